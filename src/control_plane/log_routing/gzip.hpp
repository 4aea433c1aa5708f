// Compresses texts in gzip's format. The concatenation of several results is a gzip file of the
// concatenated texts.
//
// Threads: pure. Errors: none.
#pragma once

#include <string>

namespace trainyard::log_routing {

std::string gzip(const std::string& text);

}  // namespace trainyard::log_routing
