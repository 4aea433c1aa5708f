#include "collectives/run.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace trainyard::collectives {

using plan::Action;

Run::Run(plan::Steps steps, Tag tag, Buffer buffer, Transport& transport)
    : steps_(std::move(steps)), tag_(tag), buffer_(buffer), transport_(transport) {
  CHECK(buffer_.data.size() == buffer_.scratch.size(), "the scratch has room for any range of the data");
}

std::span<std::byte> Run::bytes_of(std::span<std::byte> whole, plan::Range range) const {
  return whole.subspan(range.begin * buffer_.element_bytes, range.size() * buffer_.element_bytes);
}

Result<bool> Run::advance() {
  for (;;) {
    // All sends and receives up to the next reduce or copy move together.
    for (; position_ < steps_.size(); ++position_) {
      const plan::Step& step = steps_[position_];
      if (step.action == Action::send) {
        transport_.send(step.peer, tag_, bytes_of(buffer_.data, step.range));
      } else if (step.action == Action::receive) {
        transport_.receive(step.peer, tag_, bytes_of(buffer_.scratch, step.range));
      } else {
        break;
      }
    }
    if (!TRY(transport_.advance())) return false;
    if (position_ == steps_.size()) return true;

    const plan::Step& step = steps_[position_++];
    const auto data = bytes_of(buffer_.data, step.range);
    const auto received = bytes_of(buffer_.scratch, step.range);
    if (step.action == Action::reduce) {
      buffer_.reduce(data, received);
    } else {
      std::copy(received.begin(), received.end(), data.begin());
    }
  }
}

Result<void> Run::finish() {
  while (!TRY(advance())) TRY(transport_.wait());
  return ok();
}

}  // namespace trainyard::collectives
