// ScriptedClient answers calls by a function, and records the names of their operations.
//
// Threads: confined to one.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/client.hpp"

namespace trainyard::cli {

class ScriptedClient final : public client::Client {
 public:
  using Script = std::function<Result<Json>(const std::string& operation, const Json& input)>;
  explicit ScriptedClient(Script script, client::Settings settings = {.region = "eu-west-1"})
      : script_(std::move(script)), settings_(std::move(settings)) {}
  Result<Json> call(client::Service, std::string_view operation, const Json& input) override {
    calls.emplace_back(operation);
    return script_(std::string(operation), input);
  }
  Result<std::unique_ptr<client::Connection>> open_shell(const client::ShellRequest&) override {
    return invalid("a scripted client opens no shells");
  }
  const client::Settings& settings() const override { return settings_; }

  std::vector<std::string> calls;

 private:
  Script script_;
  client::Settings settings_;
};

}  // namespace trainyard::cli
