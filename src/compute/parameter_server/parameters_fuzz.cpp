// Whatever a worker asks or a server answers is decoded or refused; what is decoded encodes to the same bytes again, and a
// server survives hearing it.
// decoder: src/compute/parameter_server/messages.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "parameter_server/keeper.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::parameter_server;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto answer = decode_answer(bytes))
    CHECK(encode(*answer) == bytes, "the codec has one form an answer");
  const auto request = decode_request(bytes);
  if (!request) return 0;
  CHECK(encode(*request) == bytes, "the codec has one form a request");
  static const auto placement =
      Placement::make({{"rows", 5, 3, {Rule::Kind::adagrad}}, {"one", 1, 1, {}}}, 2);
  // The first byte: which server we are and how it keeps rounds.
  Keeper keeper(*placement, data[0] & 1, 2, {Consistency::Kind(data[0] / 2 % 3), 1});
  for (int again = 0; again < 2; ++again) {
    for (const auto& outgoing : keeper.heard(1, *request)) (void)encode(outgoing.answer);
    (void)keeper.heard(0, Tick{uint64_t(again)});
    (void)keeper.heard(1, Tick{uint64_t(again)});
  }
  return 0;
}
