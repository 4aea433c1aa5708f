// Decompresses request bodies: current SDKs compress a large PutMetricData (Content-Encoding:
// gzip).
//
// Threads: pure functions. Errors: invalid (not gzip, truncated, wrong checksum), exhausted (output
// larger than bytes_max).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::api {

Result<std::string> gunzip(std::string_view bytes, size_t bytes_max);

}  // namespace trainyard::api
