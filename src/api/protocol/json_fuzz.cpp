// Reads arbitrary text as a JSON request of an operation that the first byte selects. A request
// that was read is written and read again without a change.
// decoder: src/api/protocol/json.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/constraints.hpp"
#include "protocol/json.hpp"
#include "shapes/cloudwatch.hpp"
#include "shapes/logs.hpp"
#include "shapes/s3.hpp"
#include "shapes/sagemaker.hpp"

using namespace trainyard;
using namespace trainyard::api;

namespace {

template <class Structure>
void run(const shapes::Shape& shape, const shapes::Service& service, std::string_view text) {
  Structure input;
  if (!read_json(shape, text, &input)) return;
  (void)Constraints(service).check(shape, &input);
  std::string written, again;
  write_json(shape, &input, written);
  Structure second;
  CHECK(bool(read_json(shape, written, &second)), "a written document is read");
  write_json(shape, &second, again);
  CHECK(written == again, "and writes the same text");
}

template <class Operation>
void run_input(std::string_view text) {
  run<typename Operation::Input>(*Operation::shape().input, *Operation::shape().service, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 6) {
    case 0:
      run_input<shapes::sagemaker::CreateTrainingJob>(text);
      break;
    case 1:
      run_input<shapes::sagemaker::ListTrainingJobs>(text);
      break;
    case 2:
      run_input<shapes::logs::PutLogEvents>(text);
      break;
    case 3:
      run_input<shapes::cloudwatch::PutMetricData>(text);
      break;
    case 4:
      run<shapes::cloudwatch::GetMetricStatistics::Output>(
          *shapes::cloudwatch::GetMetricStatistics::shape().output, shapes::cloudwatch::kService,
          text);
      break;
    case 5:
      run_input<shapes::s3::PutObject>(text);
      break;
  }
  return 0;
}
