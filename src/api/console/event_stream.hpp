// EventStreams sends changes of jobs and new lines of one job's log to pages, as server-sent events
// on one connection for each page.
//
//   event: hello    data: {}                        the stream begins; a page reads its data
//   event: jobs     data: ["mnist-1", "mnist-2"]    these jobs changed; the page reads them again
//   event: resync   data: {}                        the page fell behind; it reads everything again
//   event: log      data: {"Lines": [{"Host","Time","Text"}], "Ranges": [..]}
//                                                   lines of the job's log, ordered by time, and the
//                                                   ranges of its streams that have these lines
//   event: denied   data: {"Message"}               the principal may not read the job's log
//   event: end      data: {}                        the session has ended
//
// A range has "Host", "Group" and "Stream", and tokens of GetLogEvents that read the lines before
// it, "Backward", and after it, "Forward".
//
// A stream occupies a thread of the server's pool, whose writes block while the page is slow.
// Meanwhile it reads neither changes nor lines, so a slow page costs no memory. Each round checks
// the session and the rights again, so a page learns nothing after they end.
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
  std::string job;  // the job with the followed log; "" = none
};

class EventStreams {
 public:
  // Threads of the pool that all pages may use together. The others remain for clients of S3.
  static constexpr size_t kStreamsMax = 120;
  static constexpr Duration kRoundInterval = 400ms;  // short enough to seem immediate
  static constexpr Duration kHeartbeat = 15s;        // detects pages that were closed

  EventStreams(const Settings& settings, const Services& services, const JobFeed& feed);

  // Returns the current context of the session's principal; nothing once the session has ended.
  using FindContext = std::function<std::optional<Context>()>;
  // Writes the response, and returns when the page is closed, when the session ends, or at stop().
  void run(net::Stream& stream, const EventRequest& request, const FindContext& find_context);
  // Ends all streams, and rejects later ones.
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
