// Serves a channel in Pipe mode: a FIFO for each epoch, CHANNEL_0, CHANNEL_1, .., in a directory
// that the job sees.
//
//   CHANNEL_e exists --reader opens--> bytes are written --all written, or the reader closes-->
//   CHANNEL_e+1 exists
//
// The next FIFO exists before the reader gets the end of the current one. A reader that closes
// early may have to retry for a moment. A finished FIFO is removed, so that no program waits for it
// forever. The job may write to the directory; nothing is written to a file that replaces a FIFO.
//
// Threads: one of its own, from start() to stop(), which never waits for the reader. Errors: at
// start() those of files. Later the first error is passed to `on_failure`, and the reader gets
// neither further bytes nor an end, so that a part does not look like the whole epoch.
// Lifetime: the constructor's arguments must outlive it. Requires: the program ignores SIGPIPE.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/thread_safety.hpp"
#include "data/feed.hpp"
#include "data/stop.hpp"
#include "os/files.hpp"

namespace trainyard::data {

class Pipe {
 public:
  // `open_epoch` begins to fetch the bytes of an epoch.
  Pipe(std::string directory, std::string channel,
       std::function<std::unique_ptr<Feed>(uint64_t epoch)> open_epoch,
       std::function<void(Error)> on_failure);
  ~Pipe() { stop(); }

  // Makes the first FIFO, which exists on return, and starts the thread.
  Result<void> start();
  // Ends the thread. FIFOs stay as they are.
  void stop();

 private:
  enum class Sent { all, closed_early, stopped };

  void run();
  Result<Sent> send_epoch(uint64_t epoch);
  Result<os::File> wait_for_reader(uint64_t epoch);
  Result<Sent> send(const os::File& fifo, Feed& feed);
  Result<Sent> write_all(const os::File& fifo, const std::vector<char>& bytes);
  Result<void> make_fifo(uint64_t epoch);
  void remove_fifo(uint64_t epoch);
  std::string name_of(uint64_t epoch) const { return channel_ + "_" + std::to_string(epoch); }

  const std::string directory_path_;
  const std::string channel_;
  const std::function<std::unique_ptr<Feed>(uint64_t)> open_epoch_;
  const std::function<void(Error)> on_failure_;
  os::File directory_;
  Stop stop_;
  Mutex mutex_;
  Feed* feed_ GUARDED_BY(mutex_) = nullptr;  // of the current epoch; stop() stops it
  std::thread thread_;
};

}  // namespace trainyard::data
