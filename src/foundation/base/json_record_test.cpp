#include "base/json_record.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

enum class Fruit { none, apple, pear };
constexpr EnumTable<Fruit> kFruits{
    "fruit", {{Fruit::none, "none"}, {Fruit::apple, "Apple"}, {Fruit::pear, "Pear"}}};

struct Basket {
  std::string owner;
  Fruit fruit = Fruit::none;
  uint32_t count = 1;
};
constexpr auto kBasket = json_record<Basket>(
    "basket",
    [](auto& side, auto& basket) {
      side("owner", basket.owner);
      side("fruit", basket.fruit, kFruits);
      side.if_set("count", basket.count);
    },
    [](const Basket& basket) -> Result<void> {
      if (basket.count > 100) return invalid("basket.count must be at most 100");
      return {};
    });

struct Shop {
  std::string name;
  bool open = false;
  double area = 0;
  int64_t debt = 0;
  uint64_t visitors = 0;
  std::optional<int> floor;
  std::optional<Instant> closed;
  Instant opened;
  Duration walk{};
  std::vector<std::string> exits;
  std::map<std::string, std::string> signs;
  Json notes;
  Fruit best = Fruit::none;
  std::optional<Fruit> worst;
  std::vector<Basket> baskets;
  std::optional<Basket> prize;
};
constexpr auto kShop = json_record<Shop>("shop", [](auto& side, auto& shop) {
  side("name", shop.name);
  side.if_set("open", shop.open);
  side.if_set("area", shop.area);
  side.if_set("debt", shop.debt);
  side.if_set("visitors", shop.visitors);
  side.if_set("floor", shop.floor);
  side("closed", shop.closed);
  side("opened", shop.opened);
  side.if_set("walk", shop.walk);
  side.if_set("exits", shop.exits);
  side.if_set("signs", shop.signs);
  side.if_set("notes", shop.notes);
  side.if_set("best", shop.best, kFruits);
  side.if_set("worst", shop.worst, kFruits);
  side.if_set("baskets", shop.baskets, kBasket);
  side.if_set("prize", shop.prize, kBasket);
  side.when(shop.open, "announced", shop.open);
});

Shop full() {
  Shop shop;
  shop.name = "corner";
  shop.open = true;
  shop.area = 2.5;
  shop.debt = -7;
  shop.visitors = UINT64_MAX;
  shop.floor = 0;
  shop.closed = from_milliseconds(2000);
  shop.opened = from_milliseconds(1000);
  shop.walk = 3s;
  shop.exits = {"front", ""};
  shop.signs = {{"left", "exit"}};
  shop.notes = {{"a", {1, 2}}};
  shop.best = Fruit::pear;
  shop.worst = Fruit::none;
  shop.baskets = {{"ann", Fruit::apple, 2}, {"bob", Fruit::none, 1}};
  shop.prize = Basket{"eve", Fruit::pear, 3};
  return shop;
}

TEST(JsonRecord, WritesAndReadsAllMembers) {
  const Json json = kShop.write(full());
  EXPECT_EQ(
      dump(json),
      R"({"announced":true,"area":2.5,"baskets":[{"count":2,"fruit":"Apple","owner":"ann"},)"
      R"({"count":1,"fruit":"none","owner":"bob"}],"best":"Pear","closed":2000,"debt":-7,"exits":["front",""],)"
      R"("floor":0,"name":"corner","notes":{"a":[1,2]},"open":true,"opened":1000,)"
      R"("prize":{"count":3,"fruit":"Pear","owner":"eve"},"signs":{"left":"exit"},)"
      R"("visitors":18446744073709551615,"walk":3000,"worst":"none"})");
  const auto again = kShop.read(json);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(kShop.write(*again), json);
}

TEST(JsonRecord, OmitsUnsetMembers) {
  EXPECT_EQ(dump(kShop.write(Shop{})), R"({"closed":null,"name":"","opened":0})");
}

TEST(JsonRecord, MissingAndNullMembersKeepTheirDefaults) {
  EXPECT_EQ(kBasket.read(Json::object())->count, 1u);
  EXPECT_EQ(kBasket.read({{"count", nullptr}, {"of a later version", 1}})->count, 1u);
  Basket basket{"ann", Fruit::apple, 9};
  EXPECT_TRUE(kBasket.read_into({{"owner", "bob"}}, basket));
  EXPECT_EQ(basket.owner, "bob");
  EXPECT_EQ(basket.count, 9u);
}

TEST(JsonRecord, NamesRecordMemberAndValueOfAFault) {
  const std::pair<Json, const char*> table[] = {
      {Json::array(), "shop must be an object, not []"},
      {{{"name", 1}}, "shop.name must be a string, not 1"},
      {{{"open", 1}}, "shop.open must be true or false, not 1"},
      {{{"area", "x"}}, "shop.area must be a number, not \"x\""},
      {{{"debt", 1.5}}, "shop.debt must be a whole number, not 1.5"},
      {{{"debt", UINT64_MAX}}, "shop.debt must be below 2^63, not 18446744073709551615"},
      {{{"visitors", -1}}, "shop.visitors must be a whole number that is not negative, not -1"},
      {{{"floor", 3'000'000'000}}, "shop.floor must be a 32 bit number, not 3000000000"},
      {{{"closed", "x"}}, "shop.closed must be a whole number, not \"x\""},
      {{{"walk", "x"}}, "shop.walk must be a whole number, not \"x\""},
      {{{"exits", Json::array({1})}}, "shop.exits must be a list of strings, not [1]"},
      {{{"signs", {{"a", 1}}}}, "shop.signs must be an object of strings, not {\"a\":1}"},
      {{{"best", 1}}, "shop.best must be a string, not 1"},
      {{{"best", "plum"}}, "shop.best: unknown fruit 'plum'"},
      {{{"worst", "plum"}}, "shop.worst: unknown fruit 'plum'"},
      {{{"baskets", 1}}, "shop.baskets must be a list, not 1"},
      {{{"baskets", Json::array({{{"count", 4'294'967'296}}})}},
       "shop.baskets: basket.count must be below 2^32, not 4294967296"},
      {{{"prize", {{"count", 101}}}}, "shop.prize: basket.count must be at most 100"},
      {{{"area", "first"}, {"debt", "second"}}, "shop.area must be a number, not \"first\""},
  };
  for (const auto& [json, message] : table) {
    const auto read = kShop.read(json);
    ASSERT_FALSE(read) << message;
    EXPECT_EQ(read.error().kind, Kind::invalid);
    EXPECT_EQ(read.error().message, message);
  }
}

}  // namespace
}  // namespace trainyard
