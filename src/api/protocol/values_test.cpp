// Tests numbers and times as text, and forms.
#include "protocol/xml.hpp"

#include <gtest/gtest.h>

#include "protocol/query.hpp"
#include "protocol/values.hpp"
#include "shapes/cloudwatch.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api {
namespace {

TEST(Values, ReadAndWriteNumbers) {
  for (const double value : {0.0, -0.0, 0.1, 1e300, -1.5e-300, 3.0, 123456789.125})
    EXPECT_EQ(*read_double(double_text(value)), value);
  EXPECT_EQ(double_text(2500), "2500");
  EXPECT_EQ(*read_double("+1.5"), 1.5);
  for (const char* text : {"", "x", "1x", "nan", "inf", "1e999", "--1", " 1"})
    EXPECT_FALSE(read_double(text)) << text;
}

TEST(Values, ReadAndWriteTimes) {
  const std::pair<int64_t, std::string> table[] = {{0, "0"},
                                                   {1500, "1.5"},
                                                   {1795167900123, "1795167900.123"},
                                                   {1795167900120, "1795167900.12"},
                                                   {-500, "-0.5"},
                                                   {-1500, "-1.5"},
                                                   {1000, "1"}};
  for (const auto& [milliseconds, text] : table) {
    EXPECT_EQ(epoch_text(from_milliseconds(milliseconds)), text);
    EXPECT_EQ(*instant_of_epoch(*read_double(text)), from_milliseconds(milliseconds));
  }
  EXPECT_FALSE(instant_of_epoch(1e12));
  EXPECT_FALSE(instant_of_epoch(std::numeric_limits<double>::quiet_NaN()));
  const auto http = shapes::TimestampFormat::http_date;
  EXPECT_EQ(*read_timestamp("Fri, 20 Nov 2026 09:45:00 GMT", http),
            from_milliseconds(1795167900000));
  EXPECT_EQ(*read_timestamp("2026-11-20T09:45:00Z", {}), from_milliseconds(1795167900000));
  EXPECT_EQ(*read_timestamp("1795167900.5", {}), from_milliseconds(1795167900500));
  EXPECT_EQ(*read_timestamp("1", shapes::TimestampFormat::epoch_seconds), from_milliseconds(1000));
  EXPECT_FALSE(read_timestamp("yesterday", {}));
}

TEST(QueryForm, ReadsListsAndMaps) {
  shapes::cloudwatch::GetMetricStatisticsOutput output;
  const auto& shape = *shapes::cloudwatch::GetMetricStatistics::shape().output;
  const auto read = [&](std::string_view form) {
    output = {};
    return read_query(shape, *read_form(form), &output);
  };
  ASSERT_TRUE(
      read("Datapoints.member.10.Unit=ten&Datapoints.member.2.Unit=two&Datapoints.member.2."
           "ExtendedStatistics.entry.1.key=p&"
           "Datapoints.member.2.ExtendedStatistics.entry.1.value=1.5&Label=a+b%2B&Other=x&Label="
           "second"));
  EXPECT_EQ(*output.label, "a b+");
  ASSERT_EQ(output.datapoints->size(), 2u);
  EXPECT_EQ((*output.datapoints)[0].unit, "two");
  EXPECT_EQ(*(*output.datapoints)[0].extended_statistics,
            (std::map<std::string, double>{{"p", 1.5}}));
  EXPECT_EQ((*output.datapoints)[1].unit, "ten");
  ASSERT_TRUE(read("Datapoints="));
  EXPECT_TRUE(output.datapoints->empty());
  EXPECT_FALSE(read("Datapoints.member.1.Sum=x"));
  EXPECT_FALSE(read("Datapoints.member.1.Timestamp=x"));
  EXPECT_FALSE(read("Datapoints.member.1.ExtendedStatistics.entry.1.key=p"));
  EXPECT_FALSE(read_form("a=%zz"));
  EXPECT_FALSE(read_form("a=%ff"));
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep += ".a";
  EXPECT_FALSE(read(deep + "=1"));
}

TEST(Xml, FindsElementsOutsideOfTheShapeAtAnyDepth) {
  const shapes::Shape& shape =
      *shapes::s3::PutBucketLifecycleConfiguration::shape().input->payload->shape;
  const auto check = [&](const std::string& inside, const std::string& before = "") {
    return check_elements(shape, *parse_xml("<LifecycleConfiguration>" + before + "<Rule>" +
                                            inside + "</Rule></LifecycleConfiguration>"));
  };
  for (const char* good :
       {"", "<Filter/>", "<Prefix></Prefix>", "<Filter>\n <Prefix>tmp/</Prefix>\n</Filter>",
        "<Filter><And><Prefix>a</Prefix><Tag><Key>k</Key><Value>v</Value></Tag><Tag><Key>l</Key>"
        "<Value/></Tag></And></Filter>",
        "<Transition><Days>1</Days></Transition><Transition><Days>2</Days></Transition>"})
    EXPECT_TRUE(check(good)) << good;
  EXPECT_TRUE(check("", "<Rule/><Rule/>")) << "a flattened list";
  for (const char* bad : {"<Filter><prefix>tmp/</prefix></Filter>", "<Filter>tmp/</Filter>",
                          "<Days>1</Days>", "<Filter><Prefix>a</Prefix><Prefix>b</Prefix></Filter>",
                          "<Filter/><Filter/>", "<Filter><Prefix><Text>a</Text></Prefix></Filter>",
                          "<Filter><And><Tag><Key>k</Key><value>v</value></Tag></And></Filter>"}) {
    const auto checked = check(bad);
    EXPECT_TRUE(!checked && checked.error().is(XmlShapeFault::outside_of_shape)) << bad;
  }
  EXPECT_FALSE(check("", "<rule/>"));
}

TEST(Xml, ChecksTheRootElementOfADocument) {
  const shapes::Member& payload = *shapes::s3::PutBucketTagging::shape().input->payload;
  EXPECT_TRUE(check_document(payload, *parse_xml("<Tagging><TagSet/></Tagging>")));
  EXPECT_TRUE(check_document(payload, *parse_xml("<x:Tagging xmlns:x='u'/>")));
  for (const char* other : {"<tagging><TagSet/></tagging>", "<CORSConfiguration/>", "<TagSet/>"}) {
    const auto checked = check_document(payload, *parse_xml(other));
    EXPECT_TRUE(!checked && checked.error().is(XmlShapeFault::outside_of_shape)) << other;
  }
}

TEST(Xml, ReadsAttributesAsMembers) {
  const shapes::Shape& shape = *shapes::s3::PutBucketLogging::shape().input->payload->shape;
  shapes::s3::BucketLoggingStatus status;
  const auto root = parse_xml(
      "<BucketLoggingStatus><LoggingEnabled><TargetBucket>b</TargetBucket><TargetPrefix/>"
      "<TargetGrants><Grant><Grantee xmlns:xsi='u' xsi:type='Group'><URI>u</URI></Grantee>"
      "<Permission>READ</Permission></Grant></TargetGrants></LoggingEnabled>"
      "</BucketLoggingStatus>");
  ASSERT_TRUE(read_xml_members(shape, *root, &status));
  const auto& grant = status.logging_enabled->target_grants->at(0);
  EXPECT_EQ(grant.grantee->type, "Group");
  EXPECT_EQ(grant.grantee->uri, "u");
}

TEST(Xml, ChecksTheNamesOfListElements) {
  const shapes::Shape& shape = *shapes::s3::PutBucketTagging::shape().input->payload->shape;
  const auto check = [&](const std::string& inside) {
    return bool(check_elements(shape, *parse_xml("<Tagging>" + inside + "</Tagging>")));
  };
  const std::string tag = "<Tag><Key>k</Key><Value>v</Value></Tag>";
  EXPECT_TRUE(check("<TagSet>" + tag + tag + "</TagSet>"));
  EXPECT_FALSE(check("<TagSet>" + tag + "<tag/></TagSet>"));
  EXPECT_FALSE(check("<TagSet/><TagSet/>"));
}

}  // namespace
}  // namespace trainyard::api
