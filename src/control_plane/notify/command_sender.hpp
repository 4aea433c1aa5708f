// Starts command lines of the config for messages: the message is the standard input, and never an
// argument. An exit status of 0 means that it was delivered.
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
  std::vector<std::string> topics;     // names; "*": all
  Duration at_most = 30s;              // then it is killed, with its process group
};

class CommandSender {
 public:
  explicit CommandSender(std::map<std::string, CommandLine> commands)
      : commands_(std::move(commands)) {}
  Sent send(const Outgoing& outgoing) const;
  // Checks that the topic may start the command. Errors: denied, the same whether the command is
  // unknown or not allowed.
  Result<void> check(const Subscription& subscription) const;

 private:
  const std::map<std::string, CommandLine> commands_;
};

}  // namespace trainyard::notify
