// Decodes chunks of LAZ one by one by the CUDA source on the host, each in memory of just its size,
// so that a sanitizer sees each access beyond it. Reads and writes little-endian 64-bit integers:
// in: layered, size, rows, and for layers the bytes of a record and the number of layers, for
// points the items and the number of extra bytes, and which attributes are wanted; then the bytes.
// Out: the error; x, y, z as int32; intensities, red, green, blue as uint16; classes as uint8.
// tests/host/host_cuda.h and the source are included before it.
static bool get(void* into, size_t size) { return std::fread(into, 1, size, stdin) == size; }

int main() {
    blockDim = {1, 1, 1};
    blockIdx = threadIdx = {0, 0, 0};
    const i64 channels = 4, pages = 3 * 256;
    i64 head[6];
    while (get(head, sizeof head)) {
        const i64 size = head[1], rows = head[2], wanted = head[5];
        u8* bytes = (u8*)std::malloc(size);
        if (size > 0 && !get(bytes, size)) return 1;
        std::vector<int> xyz(3 * rows, -1);
        std::vector<u16> more(4 * rows);
        std::vector<u8> classes(rows), notes(rows);
        const i64 chunk[4] = {(i64)bytes, size, 0, rows};
        int error = 0;
        i64 words = head[0] ? layer_words(channels) : point_words(head[4], pages);
        const i64 before = words;
        for (u32 which = 0; head[0] && which < ATTRIBUTES; ++which)
            if (wanted >> which & 1) words += attribute_words(which, channels);
        u16* work = (u16*)std::aligned_alloc(32, 2 * words);
        std::memset(work, 0, 2 * words);
        int *x = xyz.data(), *y = x + rows, *z = y + rows;
        u16 *i = more.data(), *r = i + rows, *g = r + rows, *b = g + rows;
        if (head[0]) {
            laz_layers_alone(
                chunk, 1, head[3], head[4], work, channels, x, y, z, wanted, notes.data(), &error
            );
            laz_attributes_alone(
                chunk, 1, head[3], head[4], work + before, channels, notes.data(), wanted,
                classes.data(), i, r, g, b, &error
            );
        } else {
            laz_points_alone(
                chunk, 1, head[3], head[4], work, pages, x, y, z, wanted, classes.data(), i, r, g,
                b, &error
            );
        }
        const i64 found = error;
        std::fwrite(&found, 8, 1, stdout);
        std::fwrite(x, 4, 3 * rows, stdout);
        std::fwrite(i, 2, 4 * rows, stdout);
        std::fwrite(classes.data(), 1, rows, stdout);
        std::free(bytes);
        std::free(work);
    }
}
