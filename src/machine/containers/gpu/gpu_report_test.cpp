#include "containers/gpu/gpu_report.hpp"

#include <gtest/gtest.h>

namespace trainyard::containers {
namespace {

TEST(GpuReportFormat, KeepsWhatIsUnknown) {
  for (const GpuReport& report :
       {GpuReport{{{87, 25}, {{}, 12.5}, {0, {}}}, ""}, GpuReport{{}, "the driver is gone"}}) {
    const auto read = parse_gpu_report(format_gpu_report(report));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->gpus, report.gpus);
    EXPECT_EQ(read->error, report.error);
  }
}

TEST(GpuReportFormat, RefusesAnythingElse) {
  std::string many = R"({"gpus":[{})";
  for (unsigned i = 0; i < kGpusMax; i++) many += ",{}";
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("[]"), std::string(R"({"gpus":7})"),
        std::string(R"({"gpus":[{"busy":-1}]})"), std::string(R"({"gpus":[{"busy":101}]})"),
        std::string(R"({"gpus":[{"memory_percent":1e300}]})"), many + "]}"})
    EXPECT_EQ(parse_gpu_report(text).error().kind, Kind::corrupt) << text;
}

}  // namespace
}  // namespace trainyard::containers
