#include "entry/host_run.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <list>

#include "base/activity_table.hpp"
#include "base/plural.hpp"
#include "base/sha256.hpp"
#include "base/text.hpp"
#include "contract/aws_texts.hpp"
#include "contract/contract.hpp"
#include "entry/coordinator.hpp"
#include "entry/end_file.hpp"
#include "entry/failure.hpp"
#include "entry/loop_time.hpp"
#include "entry/output_prefix.hpp"
#include "entry/rank_output.hpp"
#include "entry/sockets.hpp"

namespace trainyard::entry {
namespace {

using Time = LoopTime::Time;

constexpr int kTerminatedCode = 143;  // 128 + SIGTERM
constexpr int kNoSuchHostCode = 255;  // ssh's code
// Hosts of a gang and ranks of a host, with a margin; more connections are an error.
constexpr size_t kPeersMax = 10'000;
constexpr const char* kHostsFile = "/etc/hosts";

void say(const std::string& text) { write_all(STDOUT_FILENO, "trainyard: " + text + "\n"); }

void tell_end(const os::File& base, int code, const std::string& failure) {
  if (const auto written = write_end(base, code, failure); !written) say(written.error().message);
}

// A peer or a helper process, and its state.
struct Peer {
  explicit Peer(os::File socket) : link(std::move(socket)) {}
  Link link;
  std::string nonce;  // of the challenge to the peer
  std::string host;   // set after authentication
  bool helper = false, gone = false;
  bool rank_process = false;  // a helper that stays while its rank runs
  uint32_t awaits = 0;        // for helpers: the line whose end it waits for
};

class HostRun {
 public:
  HostRun(const HostSetup& setup, const os::File& base, Prepared prepared, Signals& signals,
          Clock& clock, Random& random)
      : setup_(setup),
        base_(base),
        settings_(std::move(prepared.settings)),
        variables_(std::move(prepared.variables)),
        plan_(std::move(prepared.plan)),
        signals_(signals),
        time_(clock),
        random_(random),
        rank_output_(contract::variable_of(variables_, kActivityVariable)),
        coordinator_(plan_.hosts) {}

  int run() {
    for (const auto& remark : plan_.remarks) say(remark);
    if (auto ready = open_links(); !ready)
      return end_with(1, "Framework Error: " + ready.error().message);
    if (leads() && coordinator_.joined(settings_.current_host)) go();
    while (!finished()) {
      wait();
      if (signals_.take()) stop();
      children_.pump();
      for (const auto& exit : children_.reap()) ended(exit);
      serve_links();
      keep_time();
    }
    return end_with(end_->code, end_->text);
  }

 private:
  bool alone() const { return plan_.hosts.size() == 1; }
  bool leads() const { return plan_.hosts.front() == settings_.current_host; }
  Time now() { return time_.now(); }
  bool finished() {
    if (!end_) return false;
    if (!children_.empty()) return false;
    // Lets the failed host report first: its agent knows whether memory was exhausted, and the
    // platform keeps the first report.
    const bool hold_back = end_->code != 0 && !stopping_ && !end_->host.empty() &&
                           end_->host != settings_.current_host && !alone();
    return !hold_back || now() >= ended_at_ + kFailedHostLead;
  }

  int end_with(int code, const std::string& failure) {
    if (!stopping_) tell_end(base_, code, failure);
    if (stopping_ && code != 0) return kTerminatedCode;
    return code;
  }

  // -- links

  Result<void> open_links() {
    started_ = now();
    if (plan_.distribution == Distribution::mpi) helpers_ = TRY(listen_for_helpers());
    if (alone()) return {};
    if (leads()) {
      listener_ = TRY(listen_for_gang(kGangPort));
      say("waiting for " + counted(plan_.hosts.size() - 1, "other host") + " to start " +
          std::string(to_string(plan_.distribution)));
    } else {
      connect_at_ = now();
    }
    return {};
  }

  void connect() {
    connect_at_ = now() + kConnectInterval;
    const auto hosts = os::read_file(kHostsFile);
    const std::string address = hosts ? address_of(*hosts, plan_.hosts.front()) : "";
    auto socket = begin_connecting(address, kGangPort);
    if (!socket) return;
    peers_.emplace_back(std::move(*socket));
    connect_at_.reset();
  }

  Peer* leader() {
    for (auto& peer : peers_)
      if (!peer.helper && !peer.gone) return &peer;
    return nullptr;
  }
  Peer* host_named(const std::string& name) {
    for (auto& peer : peers_)
      if (!peer.helper && !peer.gone && peer.host == name) return &peer;
    return nullptr;
  }

  void send(Peer& peer, const Message& message) {
    if (!peer.link.send(message)) peer.gone = true;
  }

  void accept() {
    if (listener_) {
      while (auto socket = accept_one(listener_)) {
        if (peers_.size() >= kPeersMax) continue;
        auto& peer = peers_.emplace_back(std::move(*socket));
        peer.nonce.resize(kNonceBytes);
        random_.fill(std::as_writable_bytes(std::span(peer.nonce)));
        send(peer, Challenge{kGangVersion, peer.nonce});
      }
    }
    if (helpers_) {
      while (auto socket = accept_one(helpers_))
        if (peers_.size() < kPeersMax) peers_.emplace_back(std::move(*socket)).helper = true;
    }
  }

  void serve_links() {
    accept();
    for (auto& peer : peers_) {
      if (!peer.gone && !peer.link.receive()) peer.gone = true;
      for (;;) {
        auto message = peer.link.next();
        if (!message) peer.gone = true;
        if (!message || !*message) break;
        if (!take(peer, **message)) peer.gone = true;
        if (peer.gone) break;
      }
      if (!peer.gone && peer.link.wants_to_send() && !peer.link.send_more()) peer.gone = true;
    }
    for (auto peer = peers_.begin(); peer != peers_.end();) {
      if (!peer->gone) {
        ++peer;
        continue;
      }
      const Peer left = std::move(*peer);
      peer = peers_.erase(peer);
      lose(left);
    }
  }

  void lose(const Peer& peer) {
    if (peer.helper || end_) return;
    if (leads()) {
      if (!peer.host.empty()) coordinator_.lost(peer.host, now());
    } else if (running_) {
      leader_lost_at_ = now();
    } else {
      connect_at_ = now() + kConnectInterval;  // the leading host may not be listening yet
    }
  }

  // Returns false if the message is not allowed.
  bool take(Peer& peer, const Message& message) {
    if (peer.helper) return take_from_helper(peer, message);
    if (!leads()) return take_from_leader(peer, message);
    if (const auto* join = std::get_if<Join>(&message)) return admit(peer, *join);
    if (peer.host.empty()) return false;
    if (std::holds_alternative<Done>(message)) {
      coordinator_.done(peer.host);
    } else if (const auto* failed = std::get_if<Failed>(&message)) {
      coordinator_.failed(peer.host, *failed, now());
    } else if (const auto* answer = std::get_if<Ended>(&message)) {
      tell_helper(*answer);
    } else {
      return false;
    }
    return true;
  }

  bool admit(Peer& peer, const Join& join) {
    const bool right =
        peer.host.empty() && coordinator_.is_member(join.host) &&
        host_named(join.host) == nullptr && join.host != settings_.current_host &&
        join.nonce.size() == kNonceBytes &&
        equal_in_constant_time(join.proof,
                               proof_of_host(setup_.entry_config.gang_secret, peer.nonce, join));
    if (!right) return false;
    peer.host = join.host;
    peer.link.seal_with(session_key(setup_.entry_config.gang_secret, peer.nonce, join.nonce), true);
    if (coordinator_.joined(peer.host)) go();
    return true;
  }

  bool take_from_leader(Peer& peer, const Message& message) {
    if (const auto* challenge = std::get_if<Challenge>(&message)) {
      if (challenge->version != kGangVersion || challenge->nonce.size() != kNonceBytes ||
          !peer.nonce.empty())
        return false;
      peer.nonce = challenge->nonce;
      Join join{std::string(kNonceBytes, '\0'), settings_.current_host, ""};
      random_.fill(std::as_writable_bytes(std::span(join.nonce)));
      join.proof = proof_of_host(setup_.entry_config.gang_secret, challenge->nonce, join);
      send(peer, join);
      peer.link.seal_with(
          session_key(setup_.entry_config.gang_secret, challenge->nonce, join.nonce), false);
    } else if (std::holds_alternative<Go>(message)) {
      go();
    } else if (const auto* end = std::get_if<End>(&message)) {
      begin_end(*end);
    } else if (const auto* run = std::get_if<Run>(&message)) {
      run_line(run->number, run->line);
    } else {
      return false;
    }
    return true;
  }

  bool take_from_helper(Peer& peer, const Message& message) {
    if (const auto* run = std::get_if<RunOn>(&message)) {
      if (peer.awaits != 0) return false;
      peer.awaits = ++last_number_;
      Peer* there = host_named(run->host);
      if (there == nullptr) {
        say("mpirun requested the unknown host " + run->host);
        send(peer, Ended{peer.awaits, kNoSuchHostCode});
      } else {
        send(*there, Run{peer.awaits, run->line});
      }
    } else if (std::holds_alternative<Rank>(message)) {
      peer.rank_process = true;
      if (stopping_) send(peer, End{kTerminatedCode, "", ""});
    } else if (const auto* failed = std::get_if<Failed>(&message)) {
      if (!stopping_) report(*failed);
    } else {
      return false;
    }
    return true;
  }

  void tell_helper(const Ended& answer) {
    for (auto& peer : peers_)
      if (peer.helper && peer.awaits == answer.number) send(peer, answer);
  }

  // -- processes

  void go() {
    if (running_ || end_ || stopping_) return;
    running_ = true;
    if (leads())
      for (auto& peer : peers_)
        if (!peer.helper && !peer.host.empty()) send(peer, Go{});
    for (const auto& start : plan_.starts) start_process(start);
    if (plan_.starts.empty()) done();
  }

  void start_process(const Start& start) {
    Command command{start.arguments, variables_, settings_.code_directory()};
    for (const auto& [name, value] : start.variables) command.variables[name] = value;
    command.cpus = start.cpus;
    Children::Kind kind;
    kind.role = start.role;
    kind.rank = start.rank;
    kind.signal_group = start.signal_group;
    kind.whole_lines = plan_.starts.size() > 1;
    if (start.role == Start::Role::rank) {
      rank_output_.add(start.rank);
      kind.on_output = [this, rank = start.rank](size_t bytes) { rank_output_.count(rank, bytes); };
    }
    if (start.role == Start::Role::launcher) {
      const auto per_host = settings_.framework.find("sagemaker_mpi_num_of_processes_per_host");
      const auto configured = per_host == settings_.framework.end()
                                  ? Result<int64_t>(0)
                                  : parse_int(argument_text(per_host->second));
      const int ranks = configured && *configured > 0 ? static_cast<int>(*configured)
                                                      : std::max(settings_.gpus, 1);
      kind.change_line = [this, ranks](std::string_view line) {
        return prefix_for_log(line, plan_.hosts, ranks) + "\n";
      };
    }
    if (auto started = children_.start(std::move(command), std::move(kind)); !started)
      report(Failed{start.rank, 127,
                    std::string(contract::kUserScriptError) + ": " + started.error().message});
  }

  void run_line(uint32_t number, const std::string& line) {
    Children::Kind kind;
    kind.role = Start::Role::launcher;
    kind.number = number;
    kind.signal_group = true;
    Command command{{"/bin/sh", "-c", line}, variables_, settings_.code_directory()};
    if (auto started = children_.start(std::move(command), std::move(kind)); !started) {
      say(started.error().message);
      if (Peer* peer = leader()) send(*peer, Ended{number, 127});
    }
  }

  void ended(const Children::Exit& exit) {
    if (exit.kind.number != 0) {
      if (Peer* peer = leader()) send(*peer, Ended{exit.kind.number, exit.code});
      return;
    }
    if (end_) return;
    if (exit.kind.role == Start::Role::server) {
      if (exit.code != 0) fail(exit);
      return;
    }
    if (exit.code != 0) return fail(exit);
    const auto ended_well = ++ended_well_;
    const auto counted = std::ranges::count_if(
        plan_.starts, [](const Start& start) { return start.role != Start::Role::server; });
    if (ended_well == counted) done();
  }

  void fail(const Children::Exit& exit) {
    const bool is_rank = exit.kind.role == Start::Role::rank;
    Failure failure{settings_.current_host, exit.kind.rank, exit.code, ""};
    report(Failed{exit.kind.rank, exit.code,
                  describe_failure(contract::kUserScriptError, failure, is_rank, exit.printed,
                                   exit.command)});
  }

  void done() {
    if (leads()) {
      coordinator_.done(settings_.current_host);
    } else if (Peer* peer = leader()) {
      send(*peer, Done{});
    }
  }

  // Reports the first failure of this host; later ones are its consequences.
  void report(const Failed& failed) {
    if (own_failure_ || end_) return;
    own_failure_ = End{failed.code != 0 ? failed.code : 1, settings_.current_host, failed.text};
    if (alone() || (stopping_ && !leads())) return begin_end(*own_failure_);
    if (leads()) return coordinator_.failed(settings_.current_host, failed, now());
    own_failure_due_ = now() + kLostTimeout;
    if (Peer* peer = leader()) send(*peer, failed);
  }

  // -- the end

  void stop() {
    if (stopping_) return;
    stopping_ = true;
    // Ranks below a launcher get the signal directly: the launcher would kill them at once.
    bool any_notified = false;
    for (auto& peer : peers_) {
      if (!peer.rank_process) continue;
      send(peer, End{kTerminatedCode, "", ""});
      any_notified = true;
    }
    if (plan_.distribution != Distribution::mpi || (!any_notified && plan_.hosts.size() == 1))
      children_.request_end();
    if (children_.empty() && !any_notified) begin_end(End{kTerminatedCode, "", ""});
  }

  void begin_end(const End& end) {
    if (end_) return;
    end_ = end;
    ended_at_ = now();
    if (leads())
      for (auto& peer : peers_)
        if (!peer.helper && !peer.host.empty()) send(peer, end);
    children_.request_end();
  }

  void keep_time() {
    if (leads() && !end_) {
      if (const auto& end = coordinator_.end(now())) begin_end(*end);
    }
    if (!end_ && own_failure_due_ && now() >= *own_failure_due_) begin_end(*own_failure_);
    if (!end_ && stopping_ && children_.empty() && running_)
      begin_end(End{own_failure_ ? kTerminatedCode : 0, "", ""});
    if (!end_ && leader_lost_at_ && now() >= *leader_lost_at_ + kLostTimeout)
      begin_end(own_failure_.value_or(End{
          1, plan_.hosts.front(),
          "Framework Error: " + plan_.hosts.front() + " left the distribution without a result"}));
    if (!end_ && !running_ && now() >= started_ + kJoinMax)
      begin_end(End{1, settings_.current_host,
                    "Framework Error: the hosts of the distribution did not all come"});
    if (!end_ && connect_at_ && now() >= *connect_at_) connect();
    if (end_ && !killed_ && now() >= ended_at_ + kEndGrace) {
      killed_ = true;
      children_.kill();
    }
  }

  void wait() {
    std::vector<pollfd> waits = {{signals_.descriptor(), POLLIN, 0}};
    children_.add_waits(waits);
    if (listener_) waits.push_back({listener_.descriptor(), POLLIN, 0});
    if (helpers_) waits.push_back({helpers_.descriptor(), POLLIN, 0});
    for (const auto& peer : peers_)
      waits.push_back({peer.link.descriptor(),
                       static_cast<short>(peer.link.wants_to_send() ? POLLIN | POLLOUT : POLLIN),
                       0});
    std::optional<Time> due = leads() ? coordinator_.next_deadline() : std::nullopt;
    const auto also = [&](std::optional<Time> time) {
      if (time) due = due ? std::min(*due, *time) : *time;
    };
    if (!end_) {
      also(connect_at_);
      also(own_failure_due_);
      if (leader_lost_at_) also(*leader_lost_at_ + kLostTimeout);
      if (!running_) also(started_ + kJoinMax);
    } else {
      for (const Time time : {ended_at_ + kEndGrace, ended_at_ + kFailedHostLead})
        if (time > now()) also(time);
    }
    ::poll(waits.data(), waits.size(), time_.poll_timeout(due));
  }

  const HostSetup& setup_;
  const os::File& base_;
  const Settings settings_;
  const Variables variables_;
  const Plan plan_;
  Signals& signals_;
  LoopTime time_;
  Random& random_;

  os::File listener_, helpers_;
  std::list<Peer> peers_;
  RankOutput rank_output_;  // outlives the children
  Children children_;
  Coordinator coordinator_;
  Time started_{};
  std::optional<Time> connect_at_, leader_lost_at_, own_failure_due_;
  std::optional<End> own_failure_, end_;
  Time ended_at_{};
  ptrdiff_t ended_well_ = 0;
  uint32_t last_number_ = 0;
  bool running_ = false, stopping_ = false, killed_ = false;
};

}  // namespace

int run_host(const HostSetup& setup, Clock& clock, Random& random) {
  // Becomes the subreaper of orphans, also when it is not the first process of the container.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Signals signals;
  // Opened before any process of the user runs.
  const os::File base(::open(setup.base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto preparation = prepare(setup, signals);
  if (!preparation.prepared) {
    if (preparation.otherwise.stopped) return kTerminatedCode;
    write_all(STDERR_FILENO, preparation.otherwise.failure + "\n");
    tell_end(base, preparation.otherwise.code, preparation.otherwise.failure);
    return preparation.otherwise.code;
  }
  return HostRun(setup, base, std::move(*preparation.prepared), signals, clock, random).run();
}

}  // namespace trainyard::entry
