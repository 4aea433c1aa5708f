// Decodes any bytes as a request and an answer of parameter servers. A decoded message encodes to
// the same bytes, and a server handles every decoded request.
// decoder: src/compute/parameter_server/messages.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "parameter_server/server_state.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::parameter_server;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto answer = decode_answer(bytes))
    CHECK(encode(*answer) == bytes, "a decoded answer encodes to the same bytes");
  const auto request = decode_request(bytes);
  if (!request) return 0;
  CHECK(encode(*request) == bytes, "a decoded request encodes to the same bytes");
  static const auto placement =
      Placement::make({{"rows", 5, 3, {Rule::Kind::adagrad}}, {"one", 1, 1, {}}}, 2);
  // The first byte selects the server and its consistency.
  ServerState server(*placement, data[0] & 1, 2, {Consistency::Kind(data[0] / 2 % 3), 1});
  for (int round = 0; round < 2; ++round) {
    for (const auto& outgoing : server.handle(1, *request)) (void)encode(outgoing.answer);
    (void)server.handle(0, Tick{uint64_t(round)});
    (void)server.handle(1, Tick{uint64_t(round)});
  }
  return 0;
}
