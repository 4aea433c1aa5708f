// Reads [notifications], [notifications.mail] and [notifications.commands.NAME].
//
// Threads: pure, except for the password's file. Errors: invalid, with key and expected value.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "notify/ip_block.hpp"

namespace trainyard::config {

class Table;

// The mail server that sends messages of e-mail subscriptions.
struct MailServer {
  std::string url;   // "smtp://mail.lan:25", "smtps://mail.lan:465"
  std::string from;  // an address
  std::string user, password;
  std::string ca_bundle;    // PEM file; "": the system's
  bool require_tls = true;  // for smtp://: mail is only sent with STARTTLS
};

// A command line that topics may start.
struct NotificationCommand {
  std::vector<std::string> arguments;  // the first is an absolute path
  std::vector<std::string> topics;     // the names of topics that may start it; "*": all
  Duration at_most = 30s;              // the longest run time
};

struct NotificationSettings {
  // Networks, in addition to the public internet, in which endpoints may be.
  std::vector<notify::IpBlock> allow_networks;
  std::string ca_bundle;  // of https endpoints; "": the system's
  std::optional<MailServer> mail;
  std::map<std::string, NotificationCommand> commands;
};

// Relative paths are below `directory`.
Result<void> read_notifications(Table& root, const std::string& directory,
                                NotificationSettings& settings);

}  // namespace trainyard::config
