// Reads RecordIO from its standard input with dmlc's own reader and prints each record's bytes in
// hex: a second opinion on what Pipe mode writes.
#include <dmlc/io.h>
#include <dmlc/recordio.h>

#include <cstdio>
#include <string>

class Input : public dmlc::Stream {
 public:
  size_t Read(void* into, size_t size) override { return std::fread(into, 1, size, stdin); }
  void Write(const void*, size_t) override {}
};

int main() {
  Input input;
  dmlc::RecordIOReader reader(&input);
  std::string record;
  while (reader.NextRecord(&record)) {
    for (const unsigned char byte : record) std::printf("%02x", byte);
    std::printf("\n");
  }
  return 0;
}
