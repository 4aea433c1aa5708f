// Copies a directory that the job writes to the object store while the job runs:
// /opt/ml/checkpoints, /opt/ml/output/tensorboard and /opt/ml/output/intermediate. One direction
// only: changes that others make in the store are not copied back.
//
//   make_directory() or restore() --> start() .. scans, uploads, deletes .. finish()
//
// checkpoint_sync_plan decides what to copy; this class carries it out. An object is visible as a
// whole or not at all, and a file that changed while it was read is not committed. So after a kill
// at any moment, the store has only contents that a file really had (or the beginning of an event
// file that grows). Scanning needs no watches, loses no events, and uses at most a tenth of a
// processor (kScanPauseFactor).
//
// The directory is opened again at each scan, beneath a tree that was opened before the job ran. A
// job may remove the directory and make it again; a link or a mount in its place is an error and is
// not followed.
//
// Threads: one of its own, from start() to finish() or the destructor; the other calls from one
// thread.
// Errors: those of the store and of files; while the job runs they are reported in its log once for
// each outage, and the work is retried.
// Lifetime: the constructor's arguments must outlive it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <thread>

#include "agent/files/checkpoint_sync_plan.hpp"
#include "agent/files/tree.hpp"
#include "agent/interruption.hpp"
#include "agent/keys.hpp"
#include "agent/report/facts.hpp"
#include "base/thread_safety.hpp"
#include "objects/objects.hpp"

namespace trainyard::agent {

// The default interval between two scans. A file is in the store after two scans and its transfer,
// counted from its last write.
inline constexpr Duration kScanInterval = 1s;
// After a long scan follows a pause of this many times its length.
inline constexpr int kScanPauseFactor = 10;
// During an outage of the store the interval doubles up to this limit.
inline constexpr Duration kOutageIntervalMax = 30s;
// The limit of files in one directory: their state takes some 100 MB. Further files are not copied.
inline constexpr size_t kSyncedFilesMax = 200'000;
// The limit of paths that the log names because they cannot be copied.
inline constexpr size_t kReportedPathsMax = 50;

struct SyncSettings {
  std::string directory;  // below the tree of the constructor; "" = the tree itself
  std::string place;      // the path in the container: "/opt/ml/checkpoints"
  objects::Location to;   // its key ends in '/' or is empty
  SyncRules rules = {};
  bool marks = true;  // marker files show the job what was copied (checkpoint_sync_plan.hpp)
  Duration interval = kScanInterval;
};

class CheckpointSync {
 public:
  CheckpointSync(SyncSettings settings, Tree base, objects::Objects& objects, const JobKeys& keys,
                 Facts& facts, Clock& clock);
  ~CheckpointSync();  // cancels running transfers

  // Makes the directory, writable for any user, and checks that the bucket can be listed. Requires:
  // start() was not called. Errors also: not_found: no such bucket.
  Result<void> make_directory();
  // Makes the directory likewise, and downloads the objects of the store into it. Keys that are not
  // valid file names are left out, which the log reports. Requires: start() was not called; the
  // directory is unused. Errors also: not_found: no such bucket; exhausted: the disk is too small.
  Result<void> restore(const Interruption& interruption);
  void start();
  // Ends the thread, then copies the remaining differences. Requires: no process writes to the
  // directory. May be called again after an error.
  Result<void> finish(const Interruption& interruption);

  const SyncSettings& settings() const { return settings_; }
  std::string uri() const { return "s3://" + settings_.to.bucket + "/" + settings_.to.key; }

 private:
  enum class Outcome { stored, changed };

  void run();
  // Makes one scan and carries out its plan. Returns true if nothing is left to do.
  Result<bool> iterate(bool last, const Interruption& interruption);
  Error error_of_listing(Error error) const;
  DirectoryScan scan(const Tree& tree);
  Result<void> upload(const Tree& tree, const std::string& path, const Stamp& stamp,
                      const Interruption& interruption);
  Result<Outcome> put(const Tree& tree, const std::string& path, const Stamp& stamp,
                      const Interruption& interruption);
  Result<void> remove(const Tree& tree, const std::string& path);
  void mark(const Tree& tree, const std::string& path, std::string_view add,
            std::string_view drop) const;
  void report_once(const std::string& path, const std::string& why);
  bool ending() const;

  const SyncSettings settings_;
  const Tree base_;
  objects::Objects& objects_;
  const JobKeys& keys_;
  Facts& facts_;
  Clock& clock_;
  Interruption thread_interruption_;  // interrupts the thread's work

  // Confined to the thread while there is one, then to finish().
  DirectoryScan before_;
  std::map<std::string, Stamp> stored_;
  std::set<std::string> marked_;  // the files with kUploadingMark
  std::set<std::string> reported_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace trainyard::agent
