// Unpacks bodies that a client compressed: current SDKs compress large PutMetricData (Content-Encoding: gzip).
//
// Threads: pure. Errors: invalid (not gzip, cut off, wrong checksum), exhausted (more than bytes_max come out).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::api {

Result<std::string> gunzip(std::string_view bytes, size_t bytes_max);

}  // namespace trainyard::api
