#include "config/notifications.hpp"

#include "config/password_file.hpp"
#include "config/table.hpp"

namespace trainyard::config {
namespace {

constexpr int64_t kCommandSecondsMax = 600;  // it occupies a thread of the deliveries
constexpr size_t kCommandNameMax = 80;

std::string in_directory(const std::string& directory, const std::string& path) {
  return path.empty() || path.starts_with('/') ? path : directory + path;
}

Result<void> read_mail(Table table, const std::string& directory, MailServer& mail) {
  std::string password_file;
  TRY(table.read("url", mail.url));
  TRY(table.read("from", mail.from));
  TRY(table.read("user", mail.user));
  TRY(table.read("password_file", password_file));
  TRY(table.read("ca_bundle", mail.ca_bundle));
  TRY(table.read("require_tls", mail.require_tls));
  TRY(table.nothing_else());
  if (!mail.url.starts_with("smtp://") && !mail.url.starts_with("smtps://"))
    return table.refused("url", "smtp://HOST:PORT or smtps://HOST:PORT");
  if (mail.from.find('@') == mail.from.npos ||
      mail.from.find_first_of(" \t\r\n<>") != mail.from.npos)
    return table.refused("from", "a mail address, like trainyard@example.org");
  if (mail.user.empty() != password_file.empty())
    return invalid(table.name("user") + " and password_file must be given together");
  if (!mail.user.empty() && !mail.require_tls && !mail.url.starts_with("smtps://"))
    return invalid(table.name("require_tls") +
                   " must be true with a user: its password would be sent unencrypted");
  mail.ca_bundle = in_directory(directory, mail.ca_bundle);
  if (!password_file.empty())
    mail.password = TRY(read_password_file(table, directory, password_file));
  return {};
}

Result<void> read_command(const std::string& name, Table table, NotificationCommand& command) {
  TRY(table.read("command", command.arguments));
  TRY(table.read("topics", command.topics));
  TRY(table.read_duration("timeout_seconds", command.at_most, 1s, {1, kCommandSecondsMax}));
  TRY(table.nothing_else());
  if (name.empty() || name.size() > kCommandNameMax)
    return invalid(table.name("command") + ": its name must have 1 to " +
                   std::to_string(kCommandNameMax) + " bytes");
  if (command.arguments.empty() || !command.arguments.front().starts_with('/'))
    return table.refused("command", "a list of the absolute path of a program and its arguments");
  if (command.topics.empty())
    return table.refused("topics",
                         "a list of the names of topics that may start it, or of \"*\" for all");
  return {};
}

}  // namespace

Result<void> read_notifications(Table& root, const std::string& directory,
                                NotificationSettings& settings) {
  return root.each("notifications", [&](Table table) -> Result<void> {
    std::vector<std::string> networks;
    TRY(table.read("allow_networks", networks));
    TRY(table.read("ca_bundle", settings.ca_bundle));
    TRY(table.each("mail", [&](Table mail) {
      return read_mail(std::move(mail), directory, settings.mail.emplace());
    }));
    TRY(table.each_named("commands", [&](const std::string& name, Table command) {
      return read_command(name, std::move(command), settings.commands[name]);
    }));
    TRY(table.nothing_else());
    for (const auto& text : networks)
      settings.allow_networks.push_back(
          TRY(notify::parse_ip_block(text).in(table.name("allow_networks"))));
    settings.ca_bundle = in_directory(directory, settings.ca_bundle);
    return {};
  });
}

}  // namespace trainyard::config
