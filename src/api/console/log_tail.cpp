#include "console/log_tail.hpp"

#include <algorithm>

#include "reconcile/state.hpp"

namespace trainyard::api::console {

Result<std::vector<TailLine>> LogTail::round(const domain::Job& job) {
  std::vector<TailLine> lines;
  denied_ = false;
  ranges_.clear();
  const size_t attempts = job.attempts.size();
  const size_t first = attempts > kAttemptsMax ? attempts - kAttemptsMax : 0;
  size_t streams = 0;
  for (size_t i = first; i < attempts; ++i) {
    const domain::Attempt& attempt = job.attempts[i];
    for (domain::HostIndex host = 0; host < job.spec.hosts(); ++host) {
      if (lines.size() >= kRoundLines || ++streams > kStreamsMax) break;
      const observe::StreamKey key{job.key.region, std::string(reconcile::log_group_of(job, host)),
                                   reconcile::log_stream_of(job, attempt, host)};
      if (!may_read_(key.group, key.stream)) {
        denied_ = true;
        continue;
      }
      std::string label = domain::host_name(host);
      if (i + 1 < attempts) label += " (" + std::to_string(attempt.number) + ")";
      TRY(read(key, label, lines));
    }
  }
  std::ranges::stable_sort(lines, {}, &TailLine::at);
  return lines;
}

Result<void> LogTail::read(const observe::StreamKey& key, const std::string& host,
                           std::vector<TailLine>& lines) {
  const auto known = positions_.find(key);
  observe::ReadQuery query;
  query.bytes_max = kRoundBytes;
  query.forward = known != positions_.end();
  if (query.forward) query.position = known->second;
  query.events_max = query.forward ? kRoundLines - lines.size() : kFirstLines;
  auto page = logs_.read(key, query);
  if (!page && page.error().kind == Kind::not_found) return {};  // the host has not begun
  if (!page) return std::move(page).error();
  for (observe::LogEvent& event : page->events)
    lines.push_back({host, event.at, std::move(event.message)});
  if (!page->events.empty() || known == positions_.end())
    ranges_.push_back({host, key.group, key.stream, page->begin, page->end});
  positions_[key] = page->end;
  return {};
}

}  // namespace trainyard::api::console
