#include "trainyard/ledger_role.hpp"

#include "base/log.hpp"
#include "base/text.hpp"
#include "os/process_identity.hpp"
#include "trainyard/serve_settings.hpp"

namespace trainyard::apps {
namespace {

constexpr size_t kOwnerFileBytesMax = 1 << 10;
constexpr size_t kDirectoryIdBytes = 16;
constexpr Duration kEndOfPredecessorMax = 5s;  // after SIGKILL
// The longest wait for the lock of the record: longer than another server needs to end its
// predecessor.
constexpr Duration kRecordLockMax = 15s;

// In the duration of a lease, the writer renews it kRenewalsPerLease times, and a standby reads it
// kPollsPerLease times: often, to become the writer soon after its expiry.
constexpr int kRenewalsPerLease = 3, kPollsPerLease = 10;

// The process that became the writer of the ledger last.
struct Writer {
  os::ProcessIdentity process;
  uint64_t fencing = 0;
};

// Reads the record "PROCESS STARTED FENCING"; nullopt if it is missing or malformed. Earlier
// releases wrote no fencing number.
std::optional<Writer> read_writer(const std::string& path) {
  const auto text = os::read_file(path, kOwnerFileBytesMax);
  if (!text) return {};
  const auto words = split(trim(*text), ' ');
  if (words.size() != 2 && words.size() != 3) return {};
  const auto process = parse_int(words[0]), started = parse_int(words[1]);
  const auto fencing = words.size() == 3 ? parse_int(words[2]) : Result<int64_t>(0);
  if (!process || !started || !fencing || *process <= 1 || *fencing < 0) return {};
  return Writer{{pid_t(*process), uint64_t(*started)}, uint64_t(*fencing)};
}

}  // namespace

std::optional<ledger::PostgresSettings> ledger_database_of(const config::Config& config) {
  if (!config.ledger) return {};
  return ledger::PostgresSettings{config.ledger->url, config.ledger->password};
}

Result<ledger::LedgerOwner> ledger_owner_of(const DataDirectory& data, const std::string& account,
                                            Random& random) {
  const std::string path = data.file("ledger-owner");
  if (!os::exists(path))
    TRY(os::write_file_durably(path, random.hex(kDirectoryIdBytes) + "\n", 0600));
  const std::string id(trim(TRY(os::read_file(path, kOwnerFileBytesMax))));
  return ledger::LedgerOwner{account, id, machine_name()};
}

LedgerRole::LedgerRole(const config::Config& config, const DataDirectory& data, Clock& clock)
    : data_(data), clock_(clock), database_(ledger_database_of(config)) {
  if (!config.ledger) return;
  lease_settings_.duration = config.ledger->lease;
  lease_settings_.renew_every = config.ledger->lease / kRenewalsPerLease;
  lease_settings_.poll_every = config.ledger->lease / kPollsPerLease;
}

LedgerRole::~LedgerRole() {
  if (!lease_ || !why_not().empty()) return;
  // This process is about to end, so the next writer need not end it.
  const auto lock = os::FileLock::take_within(data_.file("writer.lock"), kRecordLockMax);
  const auto writer = read_writer(data_.file("writer"));
  if (lock && writer && writer->process == os::own_identity())
    static_cast<void>(os::remove_all(data_.file("writer")));
}

Result<void> LedgerRole::prepare(const ledger::LedgerOwner& owner) {
  if (!database_) return {};
  return ledger::prepare_postgres(*database_, owner);
}

Result<bool> LedgerRole::become_writer(const std::string& name, const StandbyCallbacks& waiting) {
  if (!database_) return true;
  ledger::LeaseCandidate candidate(*database_, lease_settings_, name, clock_);
  std::string shown;
  for (;;) {
    const auto taken = candidate.try_take();
    if (taken && *taken) {
      lease_ = std::make_unique<ledger::WriterLease>(*database_, lease_settings_, **taken, clock_,
                                                     waiting.lost);
      log(Level::info, "serve", "this server is the writer of the ledger",
          {{"fencing", std::to_string(lease_->fencing())}});
      TRY(end_predecessor());
      return true;
    }
    const std::string why =
        taken ? "this server is a standby: the writer is " + candidate.seen().holder
              : "this server is a standby, and the ledger's PostgreSQL server does not answer: " +
                    taken.error().message;
    if (why != shown) waiting.standby(why, taken ? candidate.seen().holder : "");
    shown = why;
    if (!waiting.pause(lease_settings_.poll_every)) return false;
  }
}

// Ends the previous writer and replaces it in the record. A server that has stalled since it took
// the lease may find its successor in the record, and must not end it.
Result<void> LedgerRole::end_predecessor() const {
  const std::string path = data_.file("writer");
  const auto lock =
      TRY(os::FileLock::take_within(data_.file("writer.lock"), kRecordLockMax)
              .in("locking the record of the writer, which another server may be changing"));
  const auto own = os::own_identity();
  if (!own) return internal("identifying this process: it is not in /proc");
  const auto before = read_writer(path);
  if (before && before->process != *own && os::is_alive(before->process)) {
    const std::string process = std::to_string(before->process.process);
    if (before->fencing > lease_->fencing())
      return conflict("process " + process +
                      " has become the writer of the ledger since this server took the lease (its "
                      "fencing number is " +
                      std::to_string(before->fencing) + ", this server's " +
                      std::to_string(lease_->fencing()) +
                      "): start this server again as a standby");
    log(Level::warning, "serve", "ending the previous writer of the ledger, which still runs",
        {{"process", process}});
    TRY(os::kill_and_wait(before->process, kEndOfPredecessorMax).in("ending the previous writer"));
  }
  return os::write_file(path,
                        std::to_string(own->process) + " " + std::to_string(own->started) + " " +
                            std::to_string(lease_->fencing()) + "\n",
                        0600);
}

Result<std::unique_ptr<ledger::Ledger>> LedgerRole::open(const ledger::ResourceCheck& check) const {
  if (!database_)
    return ledger::open_sqlite(data_.file("ledger.db"), ledger::kCommandsMax, nullptr, check);
  return ledger::open_postgres(*database_, lease_->fencing(), ledger::kCommandsMax, check);
}

}  // namespace trainyard::apps
