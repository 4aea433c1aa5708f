#include "entry/end_file.hpp"

#include "host/beneath.hpp"

namespace trainyard::entry {

Result<void> write_end(const host::File& base, int code, const std::string& failure) {
  const auto output = TRY(host::make_directories_beneath(base, "output"));
  return code == 0 ? host::write_file_beneath(output, "success", "").in("writing output/success")
                   : host::write_file_beneath(output, "failure", failure).in("writing output/failure");
}

}  // namespace trainyard::entry
