#include "trainyard/environment.hpp"

#include "base/json.hpp"

namespace trainyard::apps {
namespace {

// Single quotes keep everything but themselves.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::string endpoints_json(const std::string& host_and_port) {
  // A service that is not listed takes the partition's defaults, so one line covers them all. The regions listed are
  // those that clients show in help texts; the expression accepts every name of AWS's form.
  Json regions = Json::object();
  for (const char* region :
       {"us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1", "eu-west-1",
        "eu-west-2", "eu-west-3", "eu-central-1", "eu-north-1", "eu-south-1", "ap-south-1", "ap-southeast-1",
        "ap-southeast-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "us-local-1"})
    regions[region] = {{"description", region}};
  const Json partition{
      {"partition", "aws"},
      {"partitionName", "Trainyard"},
      {"dnsSuffix", "amazonaws.com"},
      {"regionRegex", "^[a-z]{2}(-[a-z]+)+-\\d+$"},
      {"defaults", {{"hostname", host_and_port}, {"protocols", {"https"}}, {"signatureVersions", {"v4"}}}},
      {"regions", regions},
      // s3 must say which signature it takes, or old clients fall back to version 2. Where a client has no region yet,
      // it asks for a global endpoint.
      {"services",
       {{"s3",
         {{"partitionEndpoint", "aws-global"},
          {"isRegionalized", true},
          {"defaults", {{"protocols", {"https"}}, {"signatureVersions", {"s3v4"}}}},
          {"endpoints", {{"aws-global", {{"credentialScope", {{"region", "us-east-1"}}}}}}}}}}},
  };
  return dump(Json{{"version", 3}, {"partitions", {partition}}}, 2) + "\n";
}

std::string shell_exports(const std::string& data_directory, const ServerRecord& record) {
  std::string text;
  const auto set = [&](const std::string& name, const std::string& value) {
    text += "export " + name + "=" + quoted(value) + "\n";
  };
  set("AWS_ENDPOINT_URL", record.endpoint);
  if (!record.objects_endpoint.empty()) set("AWS_ENDPOINT_URL_S3", record.objects_endpoint);
  set("AWS_ACCESS_KEY_ID", record.key.id);
  set("AWS_SECRET_ACCESS_KEY", record.key.secret);
  set("AWS_DEFAULT_REGION", record.region);
  set("AWS_REGION", record.region);
  set("AWS_CA_BUNDLE", data_directory + "/tls/ca.pem");
  set("AWS_DATA_PATH", data_directory + "/clients");
  set("AWS_EC2_METADATA_DISABLED", "true");
  text += "unset AWS_SESSION_TOKEN AWS_PROFILE AWS_DEFAULT_PROFILE\n";
  return text;
}

}  // namespace trainyard::apps
