// Makes the file with which AWS clients that do not know AWS_ENDPOINT_URL (Debian 12's boto3 and
// AWS CLI) find a server: an endpoints.json, which botocore reads in the directories of
// AWS_DATA_PATH. In it every service of every region has this server's address.
//
// Threads: pure. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::contract {

// Where a job finds the file: the directory, for AWS_DATA_PATH, and the file itself.
inline constexpr std::string_view kClientsInside = "/opt/trainyard/clients";
inline constexpr std::string_view kEndpointsInside = "/opt/trainyard/clients/endpoints.json";

// `api_url`: "http://host:port" or "https://host:port". `objects_url`: S3's, if it is another one.
std::string endpoints_json(std::string_view api_url, std::string_view objects_url = "");

}  // namespace trainyard::contract
