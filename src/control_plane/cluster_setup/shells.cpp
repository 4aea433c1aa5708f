#include "cluster_setup/shells.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "os/process.hpp"

namespace trainyard::cluster_setup {
namespace {

constexpr int kSshFailed = 255;  // ssh's own exit code
constexpr size_t kLinesShown = 3;
constexpr size_t kErrorBytesShown = 240;

// The same for every script, so no word of it needs quotes: the login shell may be any.
constexpr const char* kRootShell =
    "sh -c 'if [ \"$(id -u)\" = 0 ]; then exec sh -s; fi; "
    "exec sudo -n env SSH_CONNECTION=\"$SSH_CONNECTION\" sh -s'";

std::vector<std::string> command_for(const std::string& destination, const SshSettings& settings) {
  if (destination.empty()) return {"sh", "-c", std::string("SSH_CONNECTION=; ") + kRootShell};
  std::vector<std::string> arguments{"ssh", "-T"};
  if (!settings.config_file.empty())
    arguments.insert(arguments.end(), {"-F", settings.config_file});
  for (const std::string& option :
       {std::string("BatchMode=yes"), "ConnectTimeout=" + std::to_string(settings.connect_seconds),
        std::string("ServerAliveInterval=15"), std::string("ServerAliveCountMax=4"),
        std::string("ForwardAgent=no"), std::string("ForwardX11=no"),
        std::string("ClearAllForwardings=yes")})
    arguments.insert(arguments.end(), {"-o", option});
  arguments.insert(arguments.end(), {"--", destination, kRootShell});
  return arguments;
}

}  // namespace

std::string last_lines(std::string_view errors) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(errors, '\n'))
    if (const auto text = trim(line); !text.empty())
      lines.push_back(to_utf8(shorten(text, kErrorBytesShown)));
  const size_t first = lines.size() > kLinesShown ? lines.size() - kLinesShown : 0;
  std::string text;
  for (size_t i = first; i < lines.size(); ++i) text += (text.empty() ? "" : "; ") + lines[i];
  return text;
}

Result<std::string> SystemShells::run(const std::string& destination, const std::string& script,
                                      Duration at_most) {
  os::Command command;
  command.arguments = command_for(destination, settings_);
  command.input = script;
  command.at_most = at_most;
  const os::Outcome outcome = TRY(os::run(command));
  if (outcome.code == 0) return outcome.output;
  const std::string why = last_lines(outcome.errors);
  if (!destination.empty() && outcome.code == kSshFailed)
    return unavailable(why.empty() ? "ssh to " + destination + " failed without a message" : why);
  return conflict(why.empty() ? "exit code " + std::to_string(outcome.code) : why);
}

}  // namespace trainyard::cluster_setup
