#include "collectives/transport/timeout.hpp"

#include <algorithm>

namespace trainyard::collectives {

Timeout::Timeout(int rank, int ranks, Duration limit, Time now)
    : rank_(rank), limit_(limit), moved_at_(now), heard_(size_t(ranks)) {}

void Timeout::set_limit(Duration limit) { limit_ = limit; }

Duration Timeout::step() const { return std::max(limit_ / kStepsInLimit, Duration(1)); }

void Timeout::heard(int peer, int guilty, Time now) { heard_[size_t(peer)] = Word{guilty, now}; }

int Timeout::guilty(std::span<const int> waited_for, Time now) const {
  const auto word_of = [&](int peer) -> const Word* {
    const auto& word = heard_[size_t(peer)];
    return word && now - word->at <= kStepsHeard * step() ? &*word : nullptr;
  };
  for (const int peer : waited_for) {
    if (!word_of(peer)) return peer;
  }
  // All of them wait. One of them names a rank other than this one, unless all ranks wait for each
  // other.
  for (const int peer : waited_for) {
    if (word_of(peer)->guilty != rank_) return word_of(peer)->guilty;
  }
  return waited_for.empty() ? rank_ : waited_for.front();
}

std::optional<int> Timeout::word(std::span<const int> waited_for, Time now) {
  if (now - moved_at_ < step()) return std::nullopt;
  const int name = guilty(waited_for, now);
  if (said_ && said_->guilty == name && now - said_->at < step()) return std::nullopt;
  said_ = Word{name, now};
  return name;
}

bool Timeout::is_over(Time now) const {
  return now - moved_at_ >= limit_ + kStepsUntilBlame * step();
}

}  // namespace trainyard::collectives
