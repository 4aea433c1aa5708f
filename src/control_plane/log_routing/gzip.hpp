// Compresses texts in the format of gzip. Texts that are compressed one by one and then joined are
// one gzip file.
//
// Threads: pure. Errors: none.
#pragma once

#include <string>

namespace trainyard::log_routing {

std::string gzip(const std::string& text);

}  // namespace trainyard::log_routing
