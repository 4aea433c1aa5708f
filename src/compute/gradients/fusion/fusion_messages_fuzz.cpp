// What a peer may say in a negotiation: any bytes, read as a report and as an answer. What decodes must encode to the
// same bytes again, and a coordinator must stand whatever a report asks for.
// decoder: src/compute/gradients/fusion/messages.cpp
#include "base/check.hpp"
#include "gradients/fusion/negotiation.hpp"

using namespace trainyard;
using namespace trainyard::gradients;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto report = decode_report(bytes)) {
    CHECK(encode(*report) == bytes, "a report encodes as it came");
    Negotiation negotiation(0, 1, {});
    if (const auto answer = negotiation.answer(std::span(&*report, 1)))
      CHECK(decode_answer(encode(*answer)), "what is answered can be read");
  }
  if (const auto answer = decode_answer(bytes)) {
    CHECK(encode(*answer) == bytes, "an answer encodes as it came");
    Negotiation negotiation(0, 2, {});
    (void)negotiation.hear_answer(*answer);
    (void)negotiation.take_plan();
  }
  return 0;
}
