// Stores in files the facts of an agent that the server has not yet acknowledged. So a server that
// was unavailable for an hour gets all of them, once, in order. docs/formats/spool.md has the
// grammar of the files.
//
// Two tracks, each numbered from 1 without gaps (wire/messages.hpp):
//
//   state   every fact is written before it may be sent, and never dropped
//   data    log lines and metric points. Beyond data_bytes_max the oldest unsent ones are dropped,
//           a segment at a time; a line in their place reports how many. A batch gets its number
//           when it is first taken, so dropping leaves no gap.
//
// Nothing is synced: a power cut that loses facts ends the host as well, so its attempt ends and is
// retried; facts that the server acknowledged are in its ledger.
//
// The directory of a killed agent is read again: every complete record is kept, and an incomplete
// record at the end is removed.
//
// Threads: callable from anywhere (one mutex). Errors: those of files. A data batch that cannot be
// written (full disk, or larger than a frame) is counted as dropped, not an error: the job
// continues.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

struct SpoolLimits {
  // An hour of a chatty job (18 KiB/s); small compared to a job's volume.
  uint64_t data_bytes_max = 64 << 20;
  // The bytes that are dropped at once: few enough to keep most data, many enough to be worth an
  // unlink.
  uint64_t segment_bytes = 4 << 20;
  // Limits the index in memory to some 6 MiB when batches are tiny.
  size_t batches_max = 100'000;
};

class Spool {
 public:
  virtual ~Spool() = default;

  // Numbers the fact and writes it. After an error the fact stays in memory and is sent, and is
  // written with the next one. So success means that all facts so far are in the file.
  virtual Result<void> add_state(wire::StateFact fact) = 0;
  virtual void add_logs(std::vector<wire::LogLine> lines) = 0;
  virtual void add_metrics(std::vector<wire::MetricPoint> points) = 0;

  // Returns the oldest fact of the track that was not taken since it was added or rewound,
  // numbered.
  virtual std::optional<wire::StateFact> take_state() = 0;
  virtual std::optional<std::string> take_data() = 0;  // an encoded LogBatch or MetricBatch
  // Acknowledges the facts that the server has, after a Welcome. All others will be taken again.
  virtual void rewind(uint64_t state_acknowledged, uint64_t data_acknowledged) = 0;
  virtual void acknowledge(wire::Track track, uint64_t number) = 0;

  virtual bool states_empty() const = 0;  // every fact is acknowledged
  virtual bool data_empty() const = 0;
  virtual uint64_t data_in_flight_bytes() const = 0;  // taken, not acknowledged
  // True if the directory contained facts when it was opened: an agent ran here before.
  virtual bool found_facts() const = 0;
};

// Returns the reason why data is dropped, as text for the user.
class SpoolReason {
 public:
  virtual ~SpoolReason() = default;
  virtual std::string reason() = 0;  // "because the server was unavailable"
};

// Lifetime: `files`, `clock` and `why` outlive the spool.
Result<std::unique_ptr<Spool>> open_spool(Files& files, const std::string& directory, Clock& clock,
                                          SpoolReason& why, const SpoolLimits& limits = {});

// Returns the records of one file, up to the first incomplete or invalid one. Pure; for open_spool
// and its fuzzer.
struct SpoolRecords {
  std::vector<std::string_view> payloads;
  size_t whole_bytes = 0;  // the offset of the first incomplete or invalid record
};
inline constexpr size_t kSpoolHeaderBytes = 8;  // of a record: length and CRC
SpoolRecords read_spool_records(std::string_view bytes);
std::string spool_record(std::string_view payload);

}  // namespace trainyard::agent
