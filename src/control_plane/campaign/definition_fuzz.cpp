// Reads any text as a campaign, and plans two rows if it is one: a definition survives writing and
// reading, and planning fails only with a message.
// decoder: src/control_plane/campaign/definition.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "campaign/definition.hpp"
#include "campaign/plan.hpp"

using namespace trainyard;
using namespace trainyard::campaign;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto definition = read_definition({reinterpret_cast<const char*>(data), size});
  if (!definition) return 0;
  const std::string text = dump(to_json(*definition));
  const auto again = read_definition(text);
  CHECK(bool(again), "what is written can be read");
  CHECK(dump(to_json(*again)) == text, "and says the same");
  const Answered answered{{"name", "region", "data"},
                          {{"x", "a", "s3://b/x/"}, {"y", "b", nullptr}}};
  Facts facts;
  facts.home = "a";
  facts.regions["a"] = facts.regions["b"] = {true, {{"ml.m5.large", {1.0, 0.5, 4, 1, 0}}}};
  const auto plan = make_plan(*definition, answered, facts);
  CHECK(plan || !plan.error().message.empty(), "a plan, or why there is none");
  return 0;
}
