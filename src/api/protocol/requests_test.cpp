// Decodes requests written by botocore (requests.json), and compares them with botocore's input,
// for all protocols and operations.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "base/json.hpp"
#include "protocol/constraints.hpp"
#include "protocol/json.hpp"
#include "protocol/query.hpp"
#include "protocol/rest_xml.hpp"
#include "protocol/route.hpp"
#include "shapes/cloudwatch.hpp"
#include "shapes/ec2.hpp"
#include "shapes/logs.hpp"
#include "shapes/s3.hpp"
#include "shapes/sagemaker.hpp"
#include "shapes/services.hpp"
#include "shapes/sts.hpp"

namespace trainyard::api {
namespace {

Json requests() {
  std::ifstream file("requests.json");
  return *parse_json(std::string{std::istreambuf_iterator<char>(file), {}});
}

net::RequestHead head_of(const Json& one) {
  net::RequestHead head;
  head.method = one["method"];
  head.target = one["target"];
  for (const auto& field : one["headers"]) head.headers.add(field[0], field[1]);
  const std::string service =
      one["service"] == "cloudwatch" ? "monitoring" : one["service"].get<std::string>();
  head.headers.add("Authorization", "AWS4-HMAC-SHA256 Credential=A/20261120/eu-west-1/" + service +
                                        "/aws4_request, SignedHeaders=host, Signature=0");
  return head;
}

// Reads a request into the operation's shape and writes the shape as JSON.
template <class Operation>
Result<std::string> read_as(const net::RequestHead& head, const std::string& protocol,
                            const std::string& body) {
  typename Operation::Input input;
  const shapes::Shape* shape = Operation::shape().input;
  if (!shape) return std::string("{}");
  if (protocol == "json") {
    TRY(read_json(*shape, body, &input));
  } else if (protocol == "query") {
    TRY(read_query(*shape, TRY(read_form(body)), &input));
  } else {
    const S3Address address = TRY(read_s3_address(head));
    const NameValues headers = head.headers.fields();
    TRY(read_rest(
        *shape, {{{"Bucket", address.bucket}, {"Key", address.key}}, address.query, headers, body},
        &input));
  }
  if (auto violations = Constraints(*Operation::shape().service).check(*shape, &input))
    return invalid(*violations);
  std::string out;
  write_json(*shape, &input, out);
  return out;
}

using Read = Result<std::string> (*)(const net::RequestHead&, const std::string&,
                                     const std::string&);

template <class... Operations>
std::map<const shapes::OperationShape*, Read> readers() {
  return {{&Operations::shape(), &read_as<Operations>}...};
}

std::map<const shapes::OperationShape*, Read> all_readers() {
  namespace sm = shapes::sagemaker;
  namespace s3 = shapes::s3;
  namespace cw = shapes::cloudwatch;
  namespace ec2 = shapes::ec2;
  return readers<sm::CreateTrainingJob, sm::ListTrainingJobs, shapes::logs::PutLogEvents,
                 shapes::logs::GetLogEvents, cw::PutMetricData, cw::GetMetricStatistics,
                 cw::ListMetrics, shapes::sts::GetCallerIdentity, ec2::CreateVpc,
                 ec2::ModifyVpcAttribute, ec2::DescribeSecurityGroups,
                 ec2::AuthorizeSecurityGroupIngress, ec2::DescribeSpotPriceHistory, s3::ListBuckets,
                 s3::CreateBucket, s3::HeadBucket, s3::DeleteBucket, s3::GetBucketLocation,
                 s3::GetObject, s3::HeadObject, s3::PutObject, s3::CopyObject, s3::DeleteObject,
                 s3::DeleteObjects, s3::ListObjects, s3::ListObjectsV2, s3::CreateMultipartUpload,
                 s3::UploadPart, s3::UploadPartCopy, s3::CompleteMultipartUpload,
                 s3::AbortMultipartUpload, s3::ListParts, s3::ListMultipartUploads>();
}

TEST(Requests, ReadsBotocoresRequests) {
  const auto readers = all_readers();
  const Json all = requests();
  ASSERT_GT(all.size(), 30u);
  for (const auto& one : all) {
    SCOPED_TRACE(one["operation"].get<std::string>() + " in " + one["protocol"].get<std::string>());
    const net::RequestHead head = head_of(one);
    const std::string body = one["body"];
    Route found = route(all_services(), head);
    ASSERT_NE(found.service, nullptr);
    EXPECT_EQ(found.service->name, one["service"]);
    if (found.protocol == Protocol::query) {
      const auto parameters = read_form(body);
      ASSERT_TRUE(parameters);
      for (const auto& [name, value] : *parameters)
        if (name == "Action") found.operation = find_operation(*found.service, value);
    } else if (found.protocol == Protocol::rest_xml) {
      std::string missing;
      found.operation = find_s3_operation(*found.service, head, *read_s3_address(head), missing);
      EXPECT_EQ(missing, "");
    }
    ASSERT_NE(found.operation, nullptr);
    ASSERT_EQ(found.operation->name, one["operation"]);
    const auto read = readers.at(found.operation)(head, one["protocol"], body);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*parse_json(*read), one["meant"]) << *read;
  }
}

TEST(Routes, FindsServicesOfTheQueryProtocolByTarget) {
  const auto target = [](const char* text) {
    net::RequestHead head;
    head.method = "POST";
    head.target = "/";
    head.headers.add("X-Amz-Target", text);
    return route(all_services(), head);
  };
  const Route found = target("iam.ListUsers");
  ASSERT_NE(found.operation, nullptr);
  EXPECT_EQ(found.operation->name, "ListUsers");
  EXPECT_EQ(found.protocol, Protocol::json);
  for (const char* unknown : {"iam.Nothing", "IAM.ListUsers", "ec2.CreateVpc", "ListUsers", ".x"})
    EXPECT_EQ(target(unknown).operation, nullptr) << unknown;
}

TEST(Routes, RejectsUnknownSubresources) {
  const auto find = [](const std::string& method, const std::string& target,
                       const std::string& header = "") {
    net::RequestHead head;
    head.method = method;
    head.target = target;
    if (!header.empty()) head.headers.add(header, "x/y");
    std::string missing;
    const auto* found =
        find_s3_operation(shapes::s3::kService, head, *read_s3_address(head), missing);
    return found ? std::string(found->name) : "no " + missing;
  };
  EXPECT_EQ(find("GET", "/"), "ListBuckets");
  EXPECT_EQ(find("GET", "/b"), "ListObjects");
  EXPECT_EQ(find("GET", "/b/"), "ListObjects");
  EXPECT_EQ(find("GET", "/b?list-type=2"), "ListObjectsV2");
  EXPECT_EQ(find("GET", "/b?list-type=3"), "no GET bucket ?list-type");
  EXPECT_EQ(find("GET", "/b?analytics&id=x"), "no GetBucketAnalyticsConfiguration");
  EXPECT_EQ(find("PUT", "/b/k?legal-hold"), "no PutObjectLegalHold");
  EXPECT_EQ(find("PUT", "/b/k?uploadId=u"), "no PUT object ?uploadId");
  EXPECT_EQ(find("PUT", "/b/k?uploadId=u&partNumber=1"), "UploadPart");
  EXPECT_EQ(find("PUT", "/b/k?uploadId=u&partNumber=1", "x-amz-copy-source"), "UploadPartCopy");
  EXPECT_EQ(find("PUT", "/b/k", "X-Amz-Copy-Source"), "CopyObject");
  EXPECT_EQ(find("PUT", "/b/k?x-id=PutObject"), "PutObject");
  EXPECT_EQ(find("POST", "/b/k"), "no POST object");
  EXPECT_EQ(find("PATCH", "/b"), "no PATCH bucket");
  EXPECT_EQ(find("GET", "/b//a"), "GetObject");
  net::RequestHead head;
  head.target = "//a";
  EXPECT_FALSE(read_s3_address(head));
  head.target = "/%zz";
  EXPECT_FALSE(read_s3_address(head));
  head.target = "/b/%ff";
  EXPECT_FALSE(read_s3_address(head));
}

TEST(Constraints, CompileAllPatternsOfInputs) {
  for (const auto* service : all_services()) {
    const Constraints constraints(*service);
    for (const auto& operation : service->operations) {
      if (!operation.input) continue;
      EXPECT_TRUE(constraints.patterns_compile(*operation.input)) << operation.name;
    }
  }
}

std::string violations(const std::string& body) {
  shapes::sagemaker::CreateTrainingJobRequest input;
  const auto& shape = *shapes::sagemaker::CreateTrainingJob::shape().input;
  EXPECT_TRUE(read_json(shape, body, &input));
  static const Constraints constraints(shapes::sagemaker::kService);
  return constraints.check(shape, &input).value_or("none");
}

TEST(Constraints, HasAwssTextForEachViolation) {
  const std::string start =
      R"({"TrainingJobName":"a","RoleArn":"arn:aws:iam::123456789012:role/Train","OutputDataConfig":{"S3OutputPath":"s3://b"})";
  const auto one = [&](const std::string& more) { return violations(start + more + "}"); };
  const std::string head = "1 validation error detected: ";
  const std::pair<std::string, std::string> table[] = {
      {"", "none"},
      {R"(,"ResourceConfig":{"InstanceCount":-1})",
       head + "Value '-1' at 'resourceConfig.instanceCount' failed to satisfy constraint: Member "
              "must have value greater than or equal to 0"},
      {R"(,"StoppingCondition":{"MaxRuntimeInSeconds":0})",
       head + "Value '0' at 'stoppingCondition.maxRuntimeInSeconds' failed to satisfy constraint: "
              "Member must have value greater than or equal to 1"},
      {R"(,"Tags":[{"Key":"k"}])", head + "Value null at 'tags.1.member.value' failed to satisfy "
                                          "constraint: Member must not be null"},
      {R"(,"InputDataConfig":[])",
       head + "Value '[]' at 'inputDataConfig' failed to satisfy constraint: "
              "Member must have length greater than or equal to 1"},
      {R"(,"HyperParameters":{"k":"line\nbreak"})",
       head + "Value '{k=line\nbreak}' at 'hyperParameters' failed to satisfy constraint: Map "
              "value must satisfy constraint: [Member must have length "
              "less than or equal to 2500, Member must have length greater than or equal to 0, "
              "Member must satisfy regular expression pattern: .*]"},
      {R"(,"AlgorithmSpecification":{"TrainingInputMode":"File","ContainerEntrypoint":["a\nb"]})",
       head + "Value '[a\nb]' at 'algorithmSpecification.containerEntrypoint' failed to satisfy "
              "constraint: Member must satisfy constraint: [Member must have length less than or "
              "equal to 256, Member must have length greater than or equal to 0, Member must "
              "satisfy regular expression pattern: .*]"},
  };
  for (const auto& [more, wanted] : table) {
    const std::string got = one(more);
    // The limits may change with the pinned model, but not the form of the message.
    EXPECT_EQ(got, wanted) << more;
  }
  // Patterns match whole values. Lengths are in characters, not in bytes.
  EXPECT_NE(
      violations(
          R"({"TrainingJobName":"a b","RoleArn":"arn:aws:iam::123456789012:role/Train","OutputDataConfig":{"S3OutputPath":"s3://b"}})"),
      "none");
  std::string wide;
  for (int i = 0; i < 256; ++i) wide += "é";
  EXPECT_EQ(one(",\"HyperParameters\":{\"" + wide + "\":\"\"}"), "none");
  EXPECT_NE(one(",\"HyperParameters\":{\"" + wide + "x\":\"\"}"), "none");
  // All violations are counted, and at most a hundred are listed.
  std::string many = ",\"Tags\":[";
  for (int i = 0; i < 1000; ++i) many += std::string(i ? "," : "") + "{\"Key\":\"k\"}";
  const std::string all = one(many + "]");
  EXPECT_TRUE(all.starts_with("1001 validation errors detected: ")) << all.substr(0, 100);
  EXPECT_LT(all.size(), 20'000u);
}

TEST(Json, WritesTimesTextsAndSpecialNumbers) {
  shapes::cloudwatch::GetMetricStatisticsOutput output;
  auto& points = output.datapoints.emplace();
  points.resize(2);
  points[0].average = 0.1;
  points[0].timestamp = from_milliseconds(1795167900123);
  points[0].unit =
      "a\"b\\c\n\x01"
      "\xc3\xa9";
  points[1].sum = std::nan("");
  points[1].maximum = -INFINITY;
  points[1].minimum = 1e300;
  points[1].sample_count = 3;
  std::string out;
  write_json(*shapes::cloudwatch::GetMetricStatistics::shape().output, &output, out);
  EXPECT_EQ(out,
            "{\"Datapoints\":[{\"Timestamp\":1795167900.123,\"Average\":0.1,\"Unit\":"
            "\"a\\\"b\\\\c\\n\\u0001\xc3\xa9\"},"
            "{\"SampleCount\":3.0,\"Sum\":\"NaN\",\"Minimum\":1e+300,\"Maximum\":\"-Infinity\"}]}");
  shapes::cloudwatch::GetMetricStatisticsOutput again;
  ASSERT_TRUE(read_json(*shapes::cloudwatch::GetMetricStatistics::shape().output, out, &again));
  EXPECT_TRUE(std::isnan(*(*again.datapoints)[1].sum));
  EXPECT_EQ(*(*again.datapoints)[0].timestamp, from_milliseconds(1795167900123));
}

TEST(Query, WritesResponsesWithTextsTimesAndMaps) {
  shapes::cloudwatch::GetMetricStatisticsOutput output;
  output.label = "a<b>&\x02";
  auto& points = output.datapoints.emplace();
  points.resize(1);
  points[0].average = 0.1;
  points[0].timestamp = from_milliseconds(1795167900000);
  points[0].extended_statistics = std::map<std::string, double>{{"p90", 2.5}};
  EXPECT_EQ(
      write_query(shapes::cloudwatch::GetMetricStatistics::shape(), &output, "id-1"),
      "<GetMetricStatisticsResponse "
      "xmlns=\"http://monitoring.amazonaws.com/doc/2010-08-01/\">\n<GetMetricStatisticsResult>"
      "<Label>a&lt;b&gt;&amp;\xEF\xBF\xBD</"
      "Label><Datapoints><member><Timestamp>2026-11-20T09:45:00Z</"
      "Timestamp><Average>0.1</Average>"
      "<ExtendedStatistics><entry><key>p90</key><value>2.5</value></entry></ExtendedStatistics></"
      "member></Datapoints></GetMetricStatisticsResult>\n<ResponseMetadata><RequestId>id-1</"
      "RequestId></ResponseMetadata>\n</GetMetricStatisticsResponse>\n");
}

TEST(RestXml, WritesBodiesAndHeaders) {
  shapes::s3::ListObjectsV2Output output;
  output.name = "b";
  output.key_count = 2;
  auto& contents = output.contents.emplace();
  contents.resize(2);
  contents[0].key = "a&b";
  contents[0].e_tag = "\"x\"";
  contents[0].last_modified = from_milliseconds(1795167900123);
  contents[1].key = "c";
  output.common_prefixes.emplace().emplace_back().prefix = "p/";
  RestReply reply =
      write_rest(shapes::s3::kService, *shapes::s3::ListObjectsV2::shape().output, &output);
  EXPECT_EQ(reply.content_type, "application/xml");
  EXPECT_EQ(reply.body,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
            "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
            "<Contents><Key>a&amp;b</Key><LastModified>2026-11-20T09:45:00.123Z</"
            "LastModified><ETag>&quot;x&quot;</ETag></Contents>"
            "<Contents><Key>c</Key></Contents><Name>b</Name><CommonPrefixes><Prefix>p/</Prefix></"
            "CommonPrefixes><KeyCount>2</KeyCount>"
            "</ListBucketResult>");
  shapes::s3::GetObjectOutput object;
  object.last_modified = from_milliseconds(1795167900123);
  object.content_length = 5;
  object.metadata = std::map<std::string, std::string>{{"one", "1"}};
  reply = write_rest(shapes::s3::kService, *shapes::s3::GetObject::shape().output, &object);
  EXPECT_EQ(reply.body, "");
  EXPECT_EQ(reply.headers, (NameValues{{"Last-Modified", "Fri, 20 Nov 2026 09:45:00 GMT"},
                                       {"Content-Length", "5"},
                                       {"x-amz-meta-one", "1"}}));
  shapes::s3::GetBucketLocationOutput where;
  where.location_constraint = "eu-west-1";
  reply = write_rest(shapes::s3::kService, *shapes::s3::GetBucketLocation::shape().output, &where);
  EXPECT_EQ(reply.body,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<LocationConstraint "
            "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">eu-west-1"
            "</LocationConstraint>");
  where.location_constraint.reset();  // us-east-1
  reply = write_rest(shapes::s3::kService, *shapes::s3::GetBucketLocation::shape().output, &where);
  EXPECT_TRUE(reply.body.ends_with(
      "<LocationConstraint "
      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"></LocationConstraint>"))
      << reply.body;
  shapes::s3::CopyObjectOutput copied;
  copied.copy_object_result.emplace().e_tag = "x";
  reply = write_rest(shapes::s3::kService, *shapes::s3::CopyObject::shape().output, &copied);
  EXPECT_EQ(reply.body,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<CopyObjectResult "
            "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><ETag>x</ETag>"
            "</CopyObjectResult>");
}

}  // namespace
}  // namespace trainyard::api
