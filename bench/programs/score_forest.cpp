// Measures random cut forests on one thread; ScoreForest.java is its peer.
//
//   score_forest ROWS DIMENSIONS TREES SAMPLES SEED WARMING SCORES
//
// ROWS are 32-bit floats, DIMENSIONS for each row; the scores of all rows are written to SCORES, 64
// bits each. Prints rows per second of processor time of training on all rows, of scoring all rows,
// and of scoring and then learning each row, as JSON. The first WARMING rounds do not count.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "bench/must.hpp"
#include "collectives/group.hpp"
#include "forest/sample.hpp"
#include "os/files.hpp"

namespace {

using namespace trainyard;

// Returns the processor time of this thread, which other programs on the machine hardly affect.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) / 1e9;
}

forest::Forest train(const forest::ForestOptions& options, std::span<const float> rows) {
  forest::Sampler sampler(options);
  for (size_t at = 0; at < rows.size(); at += options.dimensions)
    bench::must(sampler.offer({0, at}, rows.subspan(at, options.dimensions)));
  auto groups = collectives::join_in_memory(1);
  auto sample = bench::must(forest::gather_sample(sampler, *groups[0]));
  return forest::Forest::from_sample(options, sample->points, std::move(sample->trees),
                                     sample->rows, 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const auto number = [&](int index) { return size_t(std::strtoull(argv[index], nullptr, 10)); };
  const forest::ForestOptions options{number(2), number(3), number(4), number(5)};
  const std::string bytes = bench::must(os::read_file(argv[1], size_t{4} << 30));
  std::vector<float> rows(bytes.size() / sizeof(float));
  std::memcpy(rows.data(), bytes.data(), rows.size() * sizeof(float));
  const size_t count = rows.size() / options.dimensions;
  std::vector<double> scores(count);
  double trained = 0, scored = 0, streamed = 0;
  for (size_t round = 0; round <= number(6); ++round) {  // the last one counts
    double began = now();
    const forest::Forest batch = train(options, rows);
    trained = now() - began;
    began = now();
    batch.score(rows, scores);
    scored = now() - began;
    forest::Forest stream(options);
    began = now();
    double sum = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto row = std::span(rows).subspan(i * options.dimensions, options.dimensions);
      sum += stream.score(row);
      stream.update(row);
    }
    streamed = now() - began;
    if (sum != sum) return 1;
  }
  const std::string_view out(reinterpret_cast<const char*>(scores.data()),
                             scores.size() * sizeof(double));
  bench::must(os::write_file(argv[7], out));
  std::printf("%s\n", dump(Json{{"train", double(count) / trained},
                                {"score", double(count) / scored},
                                {"stream", double(count) / streamed}})
                          .c_str());
  return 0;
}
