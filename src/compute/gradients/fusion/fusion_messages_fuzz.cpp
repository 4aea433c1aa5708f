// Decodes any bytes as a report and an answer of a negotiation. Decoded messages encode to the same
// bytes, and a coordinator handles every decoded report.
// decoder: src/compute/gradients/fusion/messages.cpp
#include "base/check.hpp"
#include "gradients/fusion/negotiation.hpp"

using namespace trainyard;
using namespace trainyard::gradients;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto report = decode_report(bytes)) {
    CHECK(encode(*report) == bytes, "a decoded report encodes to the same bytes");
    Negotiation negotiation(0, 1, {});
    if (const auto answer = negotiation.answer(std::span(&*report, 1)))
      CHECK(decode_answer(encode(*answer)), "an encoded answer can be decoded");
  }
  if (const auto answer = decode_answer(bytes)) {
    CHECK(encode(*answer) == bytes, "a decoded answer encodes to the same bytes");
    Negotiation negotiation(0, 2, {});
    (void)negotiation.apply_answer(*answer);
    (void)negotiation.take_plan();
  }
  return 0;
}
