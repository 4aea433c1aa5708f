// decoder: src/control_plane/campaign/definition.cpp
//
// Reads any text as a campaign's definition. Writing and reading must not change a valid
// definition, and planning two rows with it must return a plan or an error with a message.
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
  CHECK(bool(again), "a written definition can be read");
  CHECK(dump(to_json(*again)) == text, "reading and writing keep the text");
  const QueryResult query_result{{"name", "region", "data"},
                                 {{"x", "a", "s3://b/x/"}, {"y", "b", nullptr}}};
  PlanInputs inputs;
  inputs.home = "a";
  inputs.regions["a"] = inputs.regions["b"] = {true, {{"ml.m5.large", {1.0, 0.5, 4, 1, 0}}}};
  const auto plan = make_plan(*definition, query_result, inputs);
  CHECK(plan || !plan.error().message.empty(), "a failed plan has a message");
  return 0;
}
