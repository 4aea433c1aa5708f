// Decodes any bytes as a gradient of another region. Decoded numbers encode to the same number of
// bytes.
// decoder: src/compute/local_sgd/coding.cpp
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "local_sgd/coding.hpp"

// The first byte selects the coding, the second the expected number of numbers.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::local_sgd;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (const auto named = parse_coding(bytes))
    CHECK(to_string(*named) == bytes, "a coding has one name");
  const auto coding = Coding(data[0] % (int(kCodingLast) + 1));
  const auto values = decode(coding, bytes, data[1]);
  if (!values) return 0;
  CHECK(values->size() == data[1] && bytes.size() == coded_bytes(coding, data[1]),
        "decode returns the expected number of numbers");
  const std::string again = encode(coding, *values);
  CHECK(again.size() == bytes.size(), "equal numbers of numbers have equal sizes");
  // The scale of an int8 block is computed again, and NaN has several encodings.
  const bool numbers =
      std::all_of(values->begin(), values->end(), [](float each) { return !std::isnan(each); });
  CHECK(coding == Coding::int8 || !numbers || again == bytes,
        "exact codings encode decoded numbers to the same bytes");
  return 0;
}
