#include "agent/reused_container.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>

#include "base/log.hpp"
#include "base/thread_safety.hpp"
#include "contract/container_init.hpp"
#include "contract/entry.hpp"

namespace trainyard::agent {
namespace {

// The time limit for a report of the container init, which arrives at once unless the machine
// swaps.
constexpr Duration kAnswerMax = 60s;
// The time limit for killing remaining processes and emptying directories, which a child may have
// filled with files.
constexpr Duration kClearMax = 60s;
// The time limit for the end of the container after its init has ended.
constexpr Duration kEndMax = 10s;

bool same_mounts(const std::vector<containers::Mount>& a, const std::vector<containers::Mount>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
    return one.source == other.source && one.destination == other.destination &&
           one.read_only == other.read_only && one.tmpfs_bytes == other.tmpfs_bytes &&
           one.identity == other.identity;
  });
}

// The specification without the values that each child gets at its start.
bool same_container(const containers::ContainerSpec& a, const containers::ContainerSpec& b) {
  return a.directory == b.directory && a.image_root == b.image_root &&
         a.layer_directory == b.layer_directory && same_mounts(a.mounts, b.mounts) &&
         a.hostname == b.hostname && a.network_namespace == b.network_namespace &&
         a.cpus == b.cpus && a.memory_bytes == b.memory_bytes && a.pids_max == b.pids_max &&
         a.shared_memory_bytes == b.shared_memory_bytes && a.user_id == b.user_id &&
         a.group_id == b.group_id && a.devices == b.devices && a.limits == b.limits &&
         a.read_only_root == b.read_only_root && a.best_effort_isolation == b.best_effort_isolation;
}

}  // namespace

struct ReusedContainer::State {
  State(std::unique_ptr<containers::Container> made, os::PacketSocket socket)
      : container(std::move(made)), init(std::move(socket)) {}

  std::unique_ptr<containers::Container> container;
  os::PacketSocket init;
  std::atomic<bool> broken = false;  // no further child

  // Reads the init's next report; false: none arrived in time. Errors: cancelled, corrupt; the
  // container is then broken.
  Result<bool> receive_report(contract::InitReport& answer, Duration at_most) {
    auto packet = init.receive(at_most);
    if (packet && !*packet) return false;
    Result<contract::InitReport> decoded = packet ? contract::decode_init_report((*packet)->bytes)
                                                  : Result<contract::InitReport>(packet.error());
    if (!decoded) {
      broken = true;
      return decoded.error();
    }
    answer = *std::move(decoded);
    return true;
  }
};

class ReusedContainer::Child final : public containers::Container {
 public:
  explicit Child(std::shared_ptr<State> state) : state_(std::move(state)) {}

  ~Child() override {
    if (state_->broken) return;
    const auto clear_sent = state_->init.send(contract::encode(contract::Clear{}));
    // The report about the end of the child may arrive first.
    for (bool cleared = false; clear_sent && !cleared && !state_->broken;) {
      contract::InitReport answer;
      const auto received = state_->receive_report(answer, kClearMax);
      cleared = received && *received && std::holds_alternative<contract::Cleared>(answer);
      if (received && !*received) state_->broken = true;  // it takes too long
    }
    if (!clear_sent) state_->broken = true;
  }

  Result<void> signal(int number) override {
    return state_->init.send(contract::encode(contract::SignalChild{number, false}));
  }
  void kill_all() override {
    // An init that does not react is killed with the whole container.
    if (!state_->init.send(contract::encode(contract::SignalChild{9, true})))
      state_->container->kill_all();
  }

  Result<std::optional<containers::ContainerExit>> wait(Duration at_most) override {
    if (exit_) return exit_;
    contract::InitReport answer;
    const auto received = state_->receive_report(answer, at_most);
    if (received && !*received) return std::optional<containers::ContainerExit>();
    if (received && std::holds_alternative<contract::Ended>(answer)) {
      exit_ = containers::ContainerExit{std::get<contract::Ended>(answer).code, false, false};
      exit_->out_of_memory = state_->container->out_of_memory();
      if (exit_->out_of_memory) state_->broken = true;  // the memory limit's count stays
      return exit_;
    }
    // The init has ended, or sent an invalid report.
    state_->broken = true;
    state_->container->kill_all();
    exit_ = TRY(state_->container->wait(kEndMax));
    if (!exit_) return unavailable("ending a reused container: timed out");
    exit_->runtime_killed = true;
    return exit_;
  }

  std::vector<std::string> withheld() const override { return state_->container->withheld(); }

  // CPU time since the first call. It is not read at the start of a child: reading takes as long as
  // starting one, and most children end before the first call.
  Result<containers::ContainerUsage> usage() override {
    auto now = TRY(state_->container->usage());
    const MutexLock lock(mutex_);
    if (!before_) before_ = now.cpu;
    now.cpu -= *before_;
    return now;
  }
  bool out_of_memory() const override { return exit_ && exit_->out_of_memory; }

 private:
  const std::shared_ptr<State> state_;
  Mutex mutex_;
  std::optional<std::chrono::nanoseconds> before_ GUARDED_BY(mutex_);
  std::optional<containers::ContainerExit> exit_;
};

ReusedContainer::ReusedContainer(StartContainer start, std::string entry_program)
    : start_(std::move(start)), entry_program_(std::move(entry_program)) {}

ReusedContainer::~ReusedContainer() { end(); }

bool ReusedContainer::usable() const { return state_ && !state_->broken; }

void ReusedContainer::end() {
  state_.reset();
  spec_.reset();
}

Result<void> ReusedContainer::make(const containers::ContainerSpec& wanted) {
  end();
  containers::ContainerSpec spec = wanted;
  spec.arguments = {std::string(contract::kEntryInside),
                    std::string(contract::kContainerInitOption)};
  spec.environment.clear();
  spec.working_directory = std::string("/");
  containers::Mount entry;
  entry.source = entry_program_;
  entry.destination = std::string(contract::kEntryInside);
  spec.mounts.push_back(std::move(entry));
  auto pair = TRY(os::PacketSocket::pair());
  spec.input = pair.second.descriptor();
  // The init's own output is dropped. Not /dev/null: the runtime gives its streams to the
  // container's user.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return from_errno("making a pipe");
  const os::File unread(ends[0]);
  os::File nowhere(ends[1]);
  auto container = TRY(start_(spec, nowhere.release()));
  state_ = std::make_shared<State>(std::move(container), std::move(pair.first));
  spec_ = wanted;
  return ok();
}

Result<std::unique_ptr<containers::Container>> ReusedContainer::start(
    const containers::ContainerSpec& spec, int output) {
  const os::File writing(output);
  if (!usable() || !same_container(*spec_, spec)) TRY(make(spec));
  TRY(state_->init.send(contract::encode(contract::RunChild{spec.arguments, spec.environment,
                                                            spec.working_directory}),
                        writing.descriptor()));
  contract::InitReport answer;
  const bool received = TRY(state_->receive_report(answer, kAnswerMax));
  if (received && std::holds_alternative<contract::Started>(answer))
    return std::unique_ptr<containers::Container>(std::make_unique<Child>(state_));
  if (received && std::holds_alternative<contract::NotStarted>(answer))
    return not_found(std::get<contract::NotStarted>(answer).reason);
  state_->broken = true;
  return unavailable("starting a container init: it does not answer");
}

}  // namespace trainyard::agent
