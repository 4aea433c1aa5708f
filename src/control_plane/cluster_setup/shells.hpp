// Shells runs scripts as root on machines: on this one, and on others through the system's ssh.
//
// Threads: callable from anywhere. Errors: unavailable (the machine does not answer, or its user
// may not become root), conflict (the script failed; the message has the last lines that it wrote
// to standard error), cancelled (it took too long).
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace trainyard::cluster_setup {

class Shells {
 public:
  virtual ~Shells() = default;
  // `destination`: as check_destination() accepts it; "" = this machine. Returns what the script
  // wrote to standard output.
  virtual Result<std::string> run(const std::string& destination, const std::string& script,
                                  Duration at_most) = 0;
};

struct SshSettings {
  std::string config_file;  // ssh's; "" = the user's own
  int64_t connect_seconds = 10;
};

// SystemShells runs `ssh`. Keys, host keys, ports and jump hosts are as ssh's configuration says;
// it never prompts. A user who is not root becomes root by `sudo -n`.
class SystemShells : public Shells {
 public:
  explicit SystemShells(SshSettings settings) : settings_(std::move(settings)) {}
  Result<std::string> run(const std::string& destination, const std::string& script,
                          Duration at_most) override;

 private:
  const SshSettings settings_;
};

// Returns the last lines of a program's errors, joined; at most some hundred bytes of valid UTF-8.
std::string last_lines(std::string_view errors);

}  // namespace trainyard::cluster_setup
