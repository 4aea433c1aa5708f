#include "dispatch/shell.hpp"

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace trainyard::api {
namespace {

constexpr size_t kCommandWordsMax = 256;       // of one command
constexpr size_t kCommandBytesMax = 32 << 10;  // of all its words; a head has at most 64 KiB
constexpr size_t kTerminalNameBytesMax = 64;
constexpr int64_t kSideMax = 10'000;
constexpr int64_t kHostsMax = 100'000;
constexpr Duration kPollInterval = 1s;

}  // namespace

bool is_shell_request(const net::RequestHead& head) { return head.path() == kShellPath; }

Result<gateway::ShellOrder> read_shell_request(std::string_view query) {
  gateway::ShellOrder order;
  std::string request = "{}";
  for (const auto part : split(query, '&')) {
    const size_t equals = part.find('=');
    const auto name = part.substr(0, equals);
    const std::string value =
        equals == std::string_view::npos ? "" : TRY(percent_decode(part.substr(equals + 1)));
    if (name == "job") order.job.name = value;
    if (name == "host") {
      const int64_t host = TRY(parse_int(value).in("host"));
      if (host < 0 || host > kHostsMax)
        return invalid("invalid host " + std::to_string(host) + ": must be from 0 to " +
                       std::to_string(kHostsMax));
      order.host = domain::HostIndex(host);
    }
    if (name == "request") request = value;
  }
  if (order.job.name.empty())
    return invalid("job is missing: it names the job whose host runs the shell");
  const Json json = TRY(parse_json(request).in("request"));
  if (!json.is_object()) return invalid("request must be an object");
  if (json.contains("terminal")) order.terminal = TRY(bool_at(json, "terminal"));
  if (json.contains("terminal_name")) order.terminal_name = TRY(string_at(json, "terminal_name"));
  // The name becomes an environment variable of the shell.
  const bool plain = order.terminal_name.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "-+._") == std::string::npos;
  if (order.terminal_name.size() > kTerminalNameBytesMax || !plain)
    return invalid("invalid terminal_name: must be at most " +
                   std::to_string(kTerminalNameBytesMax) + " letters, digits or any of -+._");
  for (const auto& [name, side] : {std::pair{"columns", &order.columns}, {"rows", &order.rows}}) {
    if (!json.contains(name)) continue;
    const int64_t number = TRY(int_at(json, name));
    if (number < 1 || number > kSideMax)
      return invalid(std::string(name) + " must be between 1 and " + std::to_string(kSideMax));
    *side = uint32_t(number);
  }
  size_t bytes = 0;
  for (const Json& word : json.value("command", Json::array())) {
    if (!word.is_string()) return invalid("command must be a list of strings");
    order.command.push_back(word.get<std::string>());
    bytes += order.command.back().size();
    if (order.command.back().find('\0') != std::string::npos)
      return invalid("invalid command: word " + std::to_string(order.command.size()) +
                     " has a zero byte");
  }
  if (order.command.size() > kCommandWordsMax || bytes > kCommandBytesMax)
    return invalid("invalid command: must be at most " + std::to_string(kCommandWordsMax) +
                   " words of " + std::to_string(kCommandBytesMax) + " bytes together");
  return order;
}

Result<void> carry_shell(net::Stream& stream, gateway::Shell& shell) {
  const auto connection = TRY(stream.upgrade(kShellProtocol));
  for (;;) {
    if (const auto bytes = shell.give(); !bytes.empty()) {
      if (!connection->write(bytes)) return {};
    }
    if (shell.over()) return {};
    const auto bytes = connection->read(kPollInterval, shell.descriptor());
    if (!bytes) return {};  // the client has disconnected
    if (const auto taken = shell.take(*bytes); !taken) {
      log(Level::warning, "api", "a shell's connection is closed",
          {{"why", taken.error().message}});
      return {};
    }
  }
}

}  // namespace trainyard::api
