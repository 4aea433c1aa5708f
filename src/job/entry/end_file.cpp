#include "entry/end_file.hpp"

#include "os/beneath.hpp"

namespace trainyard::entry {

Result<void> write_end(const os::File& base, int code, const std::string& failure) {
  const auto output = TRY(os::make_directories_beneath(base, "output"));
  return code == 0
             ? os::write_file_beneath(output, "success", "").in("writing output/success")
             : os::write_file_beneath(output, "failure", failure).in("writing output/failure");
}

}  // namespace trainyard::entry
