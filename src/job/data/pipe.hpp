// A channel in Pipe mode: a FIFO for each epoch, CHANNEL_0, CHANNEL_1, .., in a directory that the job sees.
//
//   CHANNEL_e is there --reader opens--> bytes flow --all sent, or the reader closes--> CHANNEL_e+1 is there
//
// The next FIFO is there before the reader meets the end of the present one; whoever closes early may have to
// ask again for a moment. A FIFO that is over is removed, so that nobody waits at it for ever. The directory
// is the job's to write in: what it puts in a FIFO's place is never written to.
//
// Threads: one of its own, from start() to stop(), which never waits for the reader. Errors: at start() those
// of files; later the first one is given to `on_failure`, and the reader gets neither bytes nor an end, so
// that nothing passes for the whole epoch.
// Lifetime: what is passed to the constructor must outlive it. Requires: the program ignores SIGPIPE.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "data/feed.hpp"
#include "data/stop.hpp"
#include "os/files.hpp"

namespace trainyard::data {

class Pipe {
 public:
  // `open_epoch` begins to fetch an epoch's bytes.
  Pipe(std::string directory, std::string channel,
       std::function<std::unique_ptr<Feed>(uint64_t epoch)> open_epoch,
       std::function<void(Error)> on_failure);
  ~Pipe() { stop(); }

  // Makes the first FIFO; it is there when this returns.
  Result<void> start();
  // FIFOs stay as they are.
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
  std::mutex mutex_;
  Feed* feed_ = nullptr;  // guarded by mutex_: the present epoch's, to be stopped
  std::thread thread_;
};

}  // namespace trainyard::data
