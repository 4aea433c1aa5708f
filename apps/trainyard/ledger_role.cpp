#include "trainyard/ledger_role.hpp"

#include "base/log.hpp"
#include "base/text.hpp"
#include "os/process_identity.hpp"
#include "trainyard/serve_settings.hpp"

namespace trainyard::apps {
namespace {

constexpr size_t kOwnerFileBytesMax = 1 << 10;
constexpr size_t kDirectoryIdBytes = 16;
constexpr Duration kEndOfPredecessorMax = 5s;

// A standby reads the lease often enough to take over soon after its expiry.
constexpr int kRenewalsPerLease = 3, kPollsPerLease = 10;

// "PROCESS STARTED", of the process that wrote the ledger last.
std::optional<os::ProcessIdentity> read_writer(const std::string& path) {
  const auto text = os::read_file(path, kOwnerFileBytesMax);
  if (!text) return {};
  const auto words = split(trim(*text), ' ');
  if (words.size() != 2) return {};
  const auto process = parse_int(words[0]), started = parse_int(words[1]);
  if (!process || !started || *process <= 1) return {};
  return os::ProcessIdentity{pid_t(*process), uint64_t(*started)};
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
  // The next writer need not end this process, which is about to end.
  if (lease_ && why_not().empty()) static_cast<void>(os::remove_all(data_.file("writer")));
}

Result<void> LedgerRole::prepare(const ledger::LedgerOwner& owner) {
  if (!database_) return {};
  return ledger::prepare_postgres(*database_, owner);
}

Result<bool> LedgerRole::become_writer(const std::string& name, const Waiting& waiting) {
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
    if (why != shown) waiting.standby(why);
    shown = why;
    if (!waiting.pause(lease_settings_.poll_every)) return false;
  }
}

// Ends the former writer, and takes its place in the record.
Result<void> LedgerRole::end_predecessor() const {
  const std::string path = data_.file("writer");
  const auto own = os::own_identity();
  const auto before = read_writer(path);
  if (before && before != own && os::is_alive(*before)) {
    log(Level::warning, "serve", "ending the former writer of the ledger, which still runs",
        {{"process", std::to_string(before->process)}});
    TRY(os::kill_and_wait(*before, kEndOfPredecessorMax).in("ending the former writer"));
  }
  if (!own) return internal("this process is not in /proc");
  return os::write_file(
      path, std::to_string(own->process) + " " + std::to_string(own->started) + "\n", 0600);
}

Result<std::unique_ptr<ledger::Ledger>> LedgerRole::open(const ledger::ResourceCheck& check) const {
  if (!database_)
    return ledger::open_sqlite(data_.file("ledger.db"), ledger::kCommandsMax, nullptr, check);
  return ledger::open_postgres(*database_, lease_->fencing(), ledger::kCommandsMax, check);
}

}  // namespace trainyard::apps
