#include "launch/kubernetes/exec_credentials.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/text.hpp"

namespace trainyard::launch {
namespace {

constexpr int kUnauthorized = 401;
// A message shows this much of the plugin's last line, and of the kubeconfig's installHint.
constexpr size_t kExecLineBytesMax = 300;

// Returns the last line, for a message: a plugin's error is usually there.
std::string last_line(std::string_view text) {
  text = trim(text);
  text = trim(text.substr(text.find_last_of('\n') + 1));
  std::string line = to_utf8(shorten(text, kExecLineBytesMax));
  std::ranges::replace_if(
      line, [](char c) { return (c >= 0 && c < ' ') || c == 127; }, ' ');
  return line;
}

class PluginSender {
 public:
  PluginSender(ExecPlugin plugin, std::string ca, OpenRest open, RunProgram run, Clock& clock)
      : plugin_(std::move(plugin)),
        ca_(std::move(ca)),
        open_(std::move(open)),
        run_(std::move(run)),
        clock_(clock) {}

  Result<RestAnswer> send(const RestRequest& request) {
    TRY(have_credential());
    auto answer = TRY(send_once(request));
    // New credentials were just printed: a further run would print the same.
    if (answer.status != kUnauthorized || !pause_is_over()) return answer;
    credential_.reset();
    TRY(renew().in("renewing credentials that Kubernetes rejects"));
    return send_once(request);
  }

 private:
  Result<void> have_credential() {
    if (credential_ && !expires_within(kExecRenewBefore)) return {};
    if (!pause_is_over()) {
      if (last_failure_ && !is_valid()) return *last_failure_;
      // The plugin printed credentials that expire soon, or have expired by this machine's clock.
      if (credential_) return {};
    }
    auto renewed = renew();
    if (!renewed && is_valid()) return {};
    return renewed;
  }

  bool is_valid() const { return credential_ && !expires_within(0s); }

  // Requires: credential_.
  bool expires_within(Duration duration) const {
    return credential_->expires && clock_.now() >= *credential_->expires - duration;
  }

  bool pause_is_over() const { return clock_.monotonic() - last_run_ >= kExecPause; }

  Result<void> renew() {
    auto credential = run_plugin();
    last_run_ = clock_.monotonic();
    if (!credential) {
      last_failure_ = unavailable("the kubeconfig's exec plugin " + plugin_.command + " " +
                                  credential.error().message);
      return *last_failure_;
    }
    last_failure_.reset();
    if (!send_ || !credential_ || credential_->certificate != credential->certificate ||
        credential_->key != credential->key)
      send_ = open_({ca_, credential->certificate, credential->key});
    credential_ = *std::move(credential);
    return {};
  }

  Result<RestAnswer> send_once(RestRequest request) {
    if (!credential_->token.empty())
      request.headers.emplace_back("Authorization", "Bearer " + credential_->token);
    return send_(request);
  }

  // The message of an error continues the plugin's name.
  Result<ExecCredential> run_plugin() const {
    os::Command command;
    command.arguments = plugin_.arguments;
    command.arguments.insert(command.arguments.begin(), plugin_.command);
    command.environment = plugin_.environment;
    command.environment["KUBERNETES_EXEC_INFO"] = plugin_.info;
    command.at_most = kExecRunMax;
    auto outcome = run_(command);
    if (!outcome) return explain(outcome.error());
    if (outcome->code != 0) {
      const std::string line = last_line(outcome->errors);
      return unavailable("failed with exit code " + std::to_string(outcome->code) +
                         (line.empty() ? " and printed no error" : ": " + line));
    }
    return read_exec_credential(outcome->output, plugin_.api_version)
        .in("printed invalid credentials");
  }

  Error explain(const Error& error) const {
    if (error.kind == Kind::not_found) {
      const std::string hint = last_line(plugin_.install_hint);
      return unavailable(
          "was not found: install it on the server's machine, or give its full path in the "
          "kubeconfig's users[].user.exec.command" +
          (hint.empty() ? "" : " (" + hint + ")"));
    }
    // The message would quote the plugin's output, which may have a token.
    if (error.kind == Kind::cancelled)
      return unavailable("was killed, because it did not end within " +
                         std::to_string(kExecRunMax / 1s) +
                         " s: it must work without a terminal and a browser");
    return unavailable("could not be run: " + error.message);
  }

  const ExecPlugin plugin_;
  const std::string ca_;
  const OpenRest open_;
  const RunProgram run_;
  Clock& clock_;
  SendRest send_;
  std::optional<ExecCredential> credential_;
  std::optional<Error> last_failure_;  // unset if the last run succeeded
  std::chrono::nanoseconds last_run_{};
};

}  // namespace

SendRest send_with_plugin(ExecPlugin plugin, std::string ca, OpenRest open, RunProgram run,
                          Clock& clock) {
  const auto sender = std::make_shared<PluginSender>(std::move(plugin), std::move(ca),
                                                     std::move(open), std::move(run), clock);
  return [sender](const RestRequest& request) { return sender->send(request); };
}

}  // namespace trainyard::launch
