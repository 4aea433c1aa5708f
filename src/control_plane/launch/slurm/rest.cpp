#include "launch/slurm/rest.hpp"

#include "base/text.hpp"
#include "launch/slurm/rest_submission.hpp"
#include "os/files.hpp"

namespace trainyard::launch {
namespace {

constexpr size_t kTokenBytesMax = 16 << 10;

class ByRest final : public Slurm {
 public:
  ByRest(SlurmRest rest, const RestVersion& version, SendRest send, Clock& clock)
      : rest_(std::move(rest)), version_(version), send_(std::move(send)), clock_(clock) {
    while (rest_.url.ends_with('/')) rest_.url.pop_back();
  }

  Result<std::vector<SlurmJob>> jobs() override {
    return read_rest_jobs(TRY(send("GET", "jobs")), rest_.user);
  }
  Result<std::vector<SlurmNode>> nodes() override {
    return read_rest_nodes(TRY(send("GET", "nodes")));
  }
  Result<uint64_t> submit(const SlurmJobRequest& request) override {
    return read_rest_submitted(
        TRY(send("POST", "job/submit", rest_submission(version_, request), request.user.name)));
  }
  Result<void> check_user(const UnixUser& user) override {
    // slurmrestd reports success for `ping` even if slurmctld rejects the request, and for
    // `partitions` it queries slurmdbd as well, which may not accept tokens.
    auto answer = send("GET", "reservations", "", user.name);
    if (answer) return {};
    if (send("GET", "reservations"))
      return denied("slurmctld does not let the token of " + rest_.user + " act for " + user.name +
                    ": slurm.rest_user must be root or SlurmUser (" + answer.error().message + ")");
    return std::move(answer).error();
  }
  Result<void> cancel(uint64_t job, const std::string& name) override {
    const std::string path = "job/" + std::to_string(job);
    TRY(unless_ended(send("POST", path, dump({{"name", name}}))));
    return unless_ended(send("DELETE", path));
  }
  Result<void> power_up(const std::vector<std::string>& nodes) override {
    return set_power(nodes, "POWER_UP");
  }
  Result<void> power_down(const std::vector<std::string>& nodes) override {
    return set_power(nodes, "POWER_DOWN");
  }

 private:
  Result<void> set_power(const std::vector<std::string>& nodes, const std::string& state) {
    if (!version_.changes_nodes)
      return invalid("slurmrestd's API " + std::string(version_.name) +
                     " cannot power nodes up and down: use a newer slurm.rest_version");
    for (const std::string& node : nodes)
      TRY(send("POST", "node/" + node, dump({{"state", Json::array({state})}})).in("node " + node));
    return {};
  }
  static Result<void> unless_ended(Result<std::string> done) {
    if (done || done.error().kind == Kind::not_found) return {};
    return std::move(done).error();
  }

  // `user`: the account to act for; "": the token's.
  Result<std::string> send(const std::string& method, const std::string& path,
                           std::string body = "", const std::string& user = "") {
    const std::string token = TRY(read_token().in("slurm.rest_token_file " + rest_.token_file));
    RestRequest request;
    request.method = method;
    request.url = rest_.url + "/slurm/" + std::string(version_.name) + "/" + path;
    request.headers = {{"X-SLURM-USER-NAME", user.empty() ? rest_.user : user},
                       {"X-SLURM-USER-TOKEN", token}};
    if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
    request.body = std::move(body);
    auto answer = TRY(send_(request).in("sending a request to slurmrestd at " + rest_.url));
    TRY(check_rest_answer(answer.status, answer.body));
    return std::move(answer.body);
  }

  // The file has the token alone, or the line that scontrol prints.
  Result<std::string> read_token() const {
    const std::string text = TRY(os::read_file(rest_.token_file, kTokenBytesMax));
    std::string_view token = trim(text);
    if (token.starts_with("SLURM_JWT=")) token.remove_prefix(10);
    TRY(check_token(token, clock_.now()));
    return std::string(token);
  }

  SlurmRest rest_;
  const RestVersion& version_;
  const SendRest send_;
  Clock& clock_;
};

}  // namespace

Result<std::unique_ptr<Slurm>> slurm_by_rest(SlurmRest rest, SendRest send, Clock& clock) {
  const auto* version = find_rest_version(rest.version);
  if (version == nullptr)
    return invalid("slurm.rest_version: unknown version '" + shorten(rest.version, 40) + "': use " +
                   rest_version_names());
  return std::unique_ptr<Slurm>(
      std::make_unique<ByRest>(std::move(rest), *version, std::move(send), clock));
}

}  // namespace trainyard::launch
