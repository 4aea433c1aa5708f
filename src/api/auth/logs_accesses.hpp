// Adds the resources of CloudWatch Logs requests that templates of the access table cannot express.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string_view>

#include "auth/access_table.hpp"

namespace trainyard::api {

// Resources in lines of the access table that stand for several ARNs.
inline constexpr std::string_view kLogStreams = "log streams";
inline constexpr std::string_view kLogGroups = "log groups";
inline constexpr std::string_view kLogRecord = "log event of a pointer";
inline constexpr std::string_view kExportedLogs = "exported log events";
inline constexpr std::string_view kLogTargets = "targets of log events";
inline constexpr std::string_view kDeliveredLogs = "logs of a delivery source";

// Adds the ARNs for one of the resources above. Returns false for any other resource.
bool add_log_accesses(std::string_view resource, std::string_view action, const Context& context,
                      const shapes::Shape& shape, const void* input, Accesses& out);

}  // namespace trainyard::api
