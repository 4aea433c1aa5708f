// Delivers messages to command lines of the config. The message is the standard input of the
// command, never an argument. An exit status of 0 means that the message was delivered.
//
// Threads: callable from anywhere; each call blocks its thread while the command runs. Errors: in
// the result.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "notify/envelope.hpp"
#include "notify/http_sender.hpp"

namespace trainyard::notify {

struct CommandLine {
  std::vector<std::string> arguments;  // the first is the path of a program
  std::vector<std::string> topics;     // names of topics; "*": all
  Duration at_most = 30s;              // afterwards the command's process group is killed
};

class CommandSender {
 public:
  explicit CommandSender(std::map<std::string, CommandLine> commands)
      : commands_(std::move(commands)) {}
  Sent send(const Outgoing& outgoing) const;
  // Checks that the topic may start the command. Errors: denied, with the same text for a command
  // that is unknown and one that is not allowed.
  Result<void> check(const Subscription& subscription) const;

 private:
  const std::map<std::string, CommandLine> commands_;
};

}  // namespace trainyard::notify
