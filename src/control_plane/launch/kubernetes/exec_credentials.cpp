#include "launch/kubernetes/exec_credentials.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "base/thread_safety.hpp"

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

// The credentials that the plugin has printed last. Threads: callable from anywhere.
class PluginCredentials {
 public:
  struct Printed {
    ExecCredential credential;
    uint64_t run = 0;  // the number of the run that has printed it
  };

  PluginCredentials(ExecPlugin plugin, RunProgram run, Clock& clock)
      : plugin_(std::move(plugin)), run_(std::move(run)), clock_(clock) {}

  Result<Printed> get() {
    const MutexLock lock(mutex_);
    TRY(have_credential());
    return Printed{*credential_, runs_};
  }

  // Returns the credentials that replace rejected ones; nullopt: a further run would print the
  // same, since they were just printed.
  Result<std::optional<Printed>> replace(uint64_t rejected) {
    const MutexLock lock(mutex_);
    if (runs_ == rejected || !credential_) {
      if (!pause_is_over()) return std::optional<Printed>();
      credential_.reset();
      TRY(renew().in("renewing credentials that Kubernetes rejects"));
    }
    return std::optional(Printed{*credential_, runs_});
  }

 private:
  Result<void> have_credential() REQUIRES(mutex_) {
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

  bool is_valid() const REQUIRES(mutex_) { return credential_ && !expires_within(0s); }

  // Requires: credential_.
  bool expires_within(Duration duration) const REQUIRES(mutex_) {
    return credential_->expires && clock_.now() >= *credential_->expires - duration;
  }

  bool pause_is_over() const REQUIRES(mutex_) {
    return clock_.monotonic() - last_run_ >= kExecPause;
  }

  Result<void> renew() REQUIRES(mutex_) {
    auto credential = run_plugin();
    last_run_ = clock_.monotonic();
    if (!credential) {
      last_failure_ = unavailable("the kubeconfig's exec plugin " + plugin_.command + " " +
                                  credential.error().message);
      return *last_failure_;
    }
    last_failure_.reset();
    credential_ = *std::move(credential);
    ++runs_;
    return {};
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
  const RunProgram run_;
  Clock& clock_;
  Mutex mutex_;  // also held while the plugin runs: all requests need its result
  std::optional<ExecCredential> credential_ GUARDED_BY(mutex_);
  uint64_t runs_ GUARDED_BY(mutex_) = 0;                  // that have printed credentials
  std::optional<Error> last_failure_ GUARDED_BY(mutex_);  // unset if the last run succeeded
  std::chrono::nanoseconds last_run_ GUARDED_BY(mutex_){};
};

// Sends the requests of one thread with these credentials.
class PluginSender {
 public:
  PluginSender(std::shared_ptr<PluginCredentials> credentials, std::string ca, OpenRest open)
      : credentials_(std::move(credentials)), ca_(std::move(ca)), open_(std::move(open)) {}

  Result<RestAnswer> send(const RestRequest& request) {
    const auto printed = TRY(credentials_->get());
    auto answer = TRY(send_with(printed.credential, request));
    if (answer.status != kUnauthorized) return answer;
    const auto replaced = TRY(credentials_->replace(printed.run));
    return replaced ? send_with(replaced->credential, request) : answer;
  }

 private:
  Result<RestAnswer> send_with(const ExecCredential& credential, RestRequest request) {
    if (!send_ || certificate_ != credential.certificate || key_ != credential.key) {
      certificate_ = credential.certificate;
      key_ = credential.key;
      send_ = open_({ca_, certificate_, key_});
    }
    if (!credential.token.empty())
      request.headers.emplace_back("Authorization", "Bearer " + credential.token);
    return send_(request);
  }

  const std::shared_ptr<PluginCredentials> credentials_;
  const std::string ca_;
  const OpenRest open_;
  std::string certificate_, key_;  // with which send_ was opened
  SendRest send_;
};

}  // namespace

OpenSendRest open_with_plugin(ExecPlugin plugin, std::string ca, OpenRest open, RunProgram run,
                              Clock& clock) {
  const auto credentials =
      std::make_shared<PluginCredentials>(std::move(plugin), std::move(run), clock);
  return [credentials, ca = std::move(ca), open = std::move(open)]() -> SendRest {
    const auto sender = std::make_shared<PluginSender>(credentials, ca, open);
    return [sender](const RestRequest& request) { return sender->send(request); };
  };
}

}  // namespace trainyard::launch
