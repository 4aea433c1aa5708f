#include "contract/clients.hpp"

#include "base/json.hpp"

namespace trainyard::contract {
namespace {

// Returns the members of an endpoint from which botocore makes a URL.
Json address_of(std::string_view url) {
  const size_t colon = url.find("://");
  const std::string scheme(colon == url.npos ? "https" : url.substr(0, colon));
  std::string_view host = colon == url.npos ? url : url.substr(colon + 3);
  host = host.substr(0, host.find('/'));
  return {{"hostname", std::string(host)}, {"protocols", {scheme}}};
}

}  // namespace

std::string endpoints_json(std::string_view api_url, std::string_view objects_url) {
  // Services that are not listed use the defaults of the partition, so one entry is enough for all.
  // Clients show the listed regions in their help texts; the regular expression accepts every valid
  // region name.
  Json regions = Json::object();
  for (const char* region :
       {"us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1", "sa-east-1",
        "eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1", "eu-north-1", "eu-south-1",
        "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "ap-northeast-2",
        "ap-northeast-3", "us-local-1"})
    regions[region] = {{"description", region}};
  Json defaults = address_of(api_url), s3 = address_of(objects_url.empty() ? api_url : objects_url);
  defaults["signatureVersions"] = {"v4"};
  // Without a list of signature versions for s3, old clients fall back to version 2. Clients
  // without a region use a global endpoint.
  s3["signatureVersions"] = {"s3v4"};
  const Json partition{
      {"partition", "aws"},
      {"partitionName", "Trainyard"},
      {"dnsSuffix", "amazonaws.com"},
      {"regionRegex", "^[a-z0-9][a-z0-9-]*$"},
      {"defaults", defaults},
      {"regions", regions},
      {"services",
       {{"s3",
         {{"partitionEndpoint", "aws-global"},
          {"isRegionalized", true},
          {"defaults", s3},
          {"endpoints", {{"aws-global", {{"credentialScope", {{"region", "us-east-1"}}}}}}}}}}},
  };
  return dump(Json{{"version", 3}, {"partitions", {partition}}}, 2) + "\n";
}

}  // namespace trainyard::contract
