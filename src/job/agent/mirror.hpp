// Keeps a directory that the job writes to in the object store: /opt/ml/checkpoints and
// /opt/ml/output/intermediate. One way only: what others put into the store meanwhile is not brought here.
//
//   restore() --> start() .. looks, uploads, deletes every kLookInterval .. finish()
//
// What is to be done is mirror_plan's; here it is done. An object is seen whole or not at all, and a file
// that changed while it was read is not committed: whatever is killed when, the store holds only contents
// that a file really had. Looking takes no watches and loses no events, and costs at most a tenth of a
// processor (kLookShare).
//
// The directory is opened anew at each look, beneath a tree that is held since before the job ran: a job may remove it and
// make it again, but a link or a mount in its place is an error and is not followed.
//
// Threads: one of its own, from start() to finish() or the destructor; the other calls from one thread.
// Errors: those of the store and of files; while the job runs they are told in its log once for each outage,
//         and tried again.
// Lifetime: what is passed to the constructor must outlive it.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "agent/facts.hpp"
#include "agent/interruption.hpp"
#include "agent/keys.hpp"
#include "agent/mirror_plan.hpp"
#include "agent/tree.hpp"
#include "objects/objects.hpp"

namespace trainyard::agent {

// Between two looks; a file is in the store two looks and its transfer after it came to rest.
inline constexpr Duration kLookInterval = 1s;
// A look that takes long is followed by so many times its length of rest.
inline constexpr int kLookShare = 10;
// After an outage: the interval doubles up to this.
inline constexpr Duration kOutageIntervalMax = 30s;
// Files of one directory: what is known of them takes some 100 MB. Files beyond are not brought over.
inline constexpr size_t kMirroredFilesMax = 200'000;
// Paths that cannot be brought over and are named in the log; further ones are not.
inline constexpr size_t kToldPathsMax = 50;

struct MirrorSettings {
  std::string directory;  // below the tree that the mirror is given; "" = the tree itself
  std::string place;      // what the job calls it: "/opt/ml/checkpoints"
  objects::Location to;   // its key ends in '/' or is empty
  bool deletions = true;  // what is gone here goes there
  bool marks = true;      // tell the job by files what was brought over (mirror_plan.hpp)
};

class Mirror {
 public:
  Mirror(MirrorSettings settings, Tree base, objects::Objects& objects, const JobKeys& keys, Facts& facts,
         Clock& clock);
  ~Mirror();  // breaks off what is under way

  // Brings what the store holds into the directory, which is made, for any user to write. Keys that cannot be
  // files there are left out, and the log says so. Requires: before start(); nothing else uses the directory.
  // Errors also: not_found: there is no such bucket; exhausted: the disk is too small.
  Result<void> restore(const Interruption& interruption);
  void start();
  // Ends the thread, then brings over what still differs. Requires: nobody writes to the directory any more.
  // May be called again after an error.
  Result<void> finish(const Interruption& interruption);

  const MirrorSettings& settings() const { return settings_; }
  std::string uri() const { return "s3://" + settings_.to.bucket + "/" + settings_.to.key; }

 private:
  enum class Outcome { stored, changed };

  void run();
  // One look and what follows from it; whether nothing is left to be done.
  Result<bool> turn(bool last, const Interruption& interruption);
  Look look(const Tree& tree);
  Result<void> upload(const Tree& tree, const std::string& path, const Stamp& stamp,
                      const Interruption& interruption);
  Result<Outcome> put(const Tree& tree, const std::string& path, const Stamp& stamp,
                      const Interruption& interruption);
  Result<void> remove(const Tree& tree, const std::string& path);
  void mark(const Tree& tree, const std::string& path, std::string_view add, std::string_view drop) const;
  void tell_once(const std::string& path, const std::string& why);
  bool ending() const;

  const MirrorSettings settings_;
  const Tree base_;
  objects::Objects& objects_;
  const JobKeys& keys_;
  Facts& facts_;
  Clock& clock_;
  Interruption broken_off_;  // of the thread's work

  // Of the thread while there is one, then of finish().
  Look before_;
  std::map<std::string, Stamp> stored_;
  std::set<std::string> marked_;  // have kUploadingMark
  std::set<std::string> told_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace trainyard::agent
