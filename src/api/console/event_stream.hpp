// EventStreams runs the event streams of pages: jobs that changed, and new lines of one job's log,
// as server-sent events on one connection.
//
//   event: hello    data: {}                        the stream begins; a page reads its data
//   event: jobs     data: ["mnist-1", "mnist-2"]    these jobs changed: read them again
//   event: resync   data: {}                        the page fell behind: read everything again
//   event: log      data: {"Lines": [{"Host","Time","Text"}], "Ranges": [..]}
//                                                   lines of the job's log, ordered by time, and the
//                                                   parts of its streams that they are
//   event: denied   data: {"Message"}               the principal may not read the job's log
//   event: end      data: {}                        the session has ended
//
// A range has "Host", "Group" and "Stream", and tokens of GetLogEvents that read what is before it
// ("Backward") and behind it ("Forward").
//
// A stream is a thread of the server's pool that writes to a slow page with blocking calls.
// Meanwhile it reads neither changes nor lines, so a slow page costs the server no memory. The
// session and the rights are checked again in each round: a page learns nothing after they end.
//
// Threads: run() is called from many threads at once; stop() from any. Errors: none.
#pragma once

#include <functional>
#include <string>

#include "auth/authorizer.hpp"
#include "auth/principals.hpp"
#include "base/thread_safety.hpp"
#include "base/time.hpp"
#include "console/job_feed.hpp"
#include "console/session_table.hpp"
#include "net/http_server.hpp"
#include "operations/context.hpp"
#include "operations/services.hpp"

namespace trainyard::api::console {

struct EventRequest {
  std::string region;
  std::string job;  // whose log is followed; "" = none
};

class EventStreams {
 public:
  // Threads of the pool that pages may use together; the others are left to clients of S3.
  static constexpr size_t kStreamsMax = 120;
  static constexpr Duration kRoundInterval = 400ms;  // short enough to seem immediate
  static constexpr Duration kHeartbeat = 15s;        // detects pages that were closed

  EventStreams(const Settings& settings, const Services& services, const JobFeed& feed);

  // Returns the session's principal now; nothing once the session has ended.
  using FindContext = std::function<std::optional<Context>()>;
  // Writes the response, and returns when the page is closed, when the session ends, or at stop().
  void run(net::Stream& stream, const EventRequest& request, const FindContext& find_context);
  // Ends all streams, also later ones.
  void stop();

 private:
  class Running;
  bool may(const Context& context, const shapes::OperationShape& operation,
           const void* input) const;
  bool wait_for_next_round();
  bool enter();
  void leave();

  const Services& services_;
  const Authorizer authorizer_;
  const JobFeed& feed_;
  mutable Mutex mutex_;
  ConditionVariable stopped_changed_;
  bool stopped_ GUARDED_BY(mutex_) = false;
  size_t running_ GUARDED_BY(mutex_) = 0;
};

}  // namespace trainyard::api::console
