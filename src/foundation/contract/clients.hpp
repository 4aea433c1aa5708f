// Makes the file by which AWS clients that do not support AWS_ENDPOINT_URL (Debian 12's boto3 and
// AWS CLI) find a server: an endpoints.json, which botocore reads in the directories of
// AWS_DATA_PATH. In it every service of every region has the address of this server.
//
// Threads: pure. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::contract {

// The directory of the file in a job's container, for AWS_DATA_PATH, and the file.
inline constexpr std::string_view kClientsInside = "/opt/trainyard/clients";
inline constexpr std::string_view kEndpointsInside = "/opt/trainyard/clients/endpoints.json";

// Returns the content of the file. `api_url` is "http://host:port" or "https://host:port";
// `objects_url` is the URL of S3, if it differs.
std::string endpoints_json(std::string_view api_url, std::string_view objects_url = "");

}  // namespace trainyard::contract
