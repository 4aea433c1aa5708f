#include "domain/record.hpp"

#include <gtest/gtest.h>

namespace trainyard::domain {
namespace {

RecordWrite put(const std::string& name, Json document) {
  return {{"user", name}, std::move(document)};
}

TEST(Records, CountsWritesPerRecordAndInTotal) {
  Records records = *changed({}, {put("ann", {{"a", 1}}), put("bob", Json::object())});
  records = *changed(records, {put("ann", {{"a", 2}})});
  EXPECT_EQ(records.version, 2u);
  EXPECT_EQ(records.all.at({"user", "ann"})->revision, 2u);
  EXPECT_EQ(records.all.at({"user", "ann"})->document, (Json{{"a", 2}}));
  EXPECT_EQ(records.all.at({"user", "bob"})->revision, 1u);
  records =
      *changed(records, {{{"user", "ann"}, std::nullopt}, {{"user", "unknown"}, std::nullopt}});
  EXPECT_EQ(records.all.size(), 1u);
}

TEST(Records, EnforcesLimits) {
  EXPECT_EQ(changed({}, {put("", Json::object())}).error().kind, Kind::invalid);
  EXPECT_EQ(changed({}, {put("ann", Json::array())}).error().kind, Kind::invalid);
  EXPECT_EQ(changed({}, {put(std::string(kRecordNameBytesMax, 'n'), Json::object())}).error().kind,
            Kind::invalid);
  EXPECT_EQ(changed({}, {put("ann", {{"a", std::string(kRecordBytesMax, 'x')}})}).error().kind,
            Kind::exhausted);
  EXPECT_EQ(changed({}, std::vector<RecordWrite>(kRecordWritesMax + 1, put("ann", Json::object())))
                .error()
                .kind,
            Kind::exhausted);
}

TEST(RecordWrite, JsonRoundTrips) {
  const RecordWrite write = put("ann", {{"a", 1}});
  const auto read = record_write_from_json(to_json(write));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key, write.key);
  EXPECT_EQ(read->document, write.document);
  EXPECT_FALSE(record_write_from_json(to_json({{"user", "ann"}, std::nullopt}))->document);
  EXPECT_FALSE(record_write_from_json(Json::array()));
}

}  // namespace
}  // namespace trainyard::domain
