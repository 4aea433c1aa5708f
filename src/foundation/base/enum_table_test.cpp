#include "base/enum_table.hpp"

#include <gtest/gtest.h>

namespace trainyard {
namespace {

enum class Planet { venus, earth, mars };
constexpr EnumTable<Planet> kPlanets{
    "planet", {{Planet::venus, "VENUS"}, {Planet::earth, "EARTH"}, {Planet::mars, "MARS"}}};

enum class Moon : unsigned char { small };

static_assert(kEnumerators<Planet> == 3 && kEnumerators<Moon> == 1 && kEnumerators<Kind> == 9);
static_assert(kLastEnumerator<Planet> == Planet::mars && kLastEnumerator<Kind> == Kind::internal);

TEST(EnumTable, DerivesBothDirectionsFromOneTable) {
  for (const Planet each : enumerators<Planet>()) {
    EXPECT_EQ(kPlanets.find(kPlanets.text(each)), each);
    EXPECT_EQ(*kPlanets.parse(kPlanets.text(each)), each);
  }
  EXPECT_EQ(kPlanets.text(Planet::mars), "MARS");
}

TEST(EnumTable, NamesTheSetInErrors) {
  EXPECT_EQ(kPlanets.find("mars"), std::nullopt) << "case counts";
  const auto unknown = kPlanets.parse("pluto");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, Kind::invalid);
  EXPECT_EQ(unknown.error().message, "unknown planet 'pluto'");
  EXPECT_LT(kPlanets.parse(std::string(1000, 'x')).error().message.size(), 100U);
}

TEST(EnumTable, RecognizesValuesOutsideTheEnum) {
  EXPECT_TRUE(is_enumerator<Planet::mars>());
  EXPECT_FALSE(is_enumerator<static_cast<Planet>(3)>());
  EXPECT_EQ(kPlanets.text(static_cast<Planet>(3)), "unknown");
}

TEST(EnumTable, ListsTheKindsOfErrors) {
  for (const Kind kind : enumerators<Kind>()) EXPECT_NE(to_string(kind), "unknown");
}

}  // namespace
}  // namespace trainyard
