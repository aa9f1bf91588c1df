;; Source of the bytes in kernels.ts. `kernels.test.ts` assembles it with npm's `wabt` and compares.
(module
  (memory (export "memory") 1)

  ;; Writes to `out` the dot product, an i32 each, of the i16 vector at `query` with `count` i8 vectors: the first at
  ;; `vectors`, and each `stride` bytes after the one before. `length` is their number of components, a multiple of 16. The caller sees to
  ;; it that no sum leaves 32 bits.
  (func (export "dots") (param $query i32) (param $vectors i32) (param $count i32) (param $length i32) (param $stride i32) (param $out i32)
    (local $sum v128) (local $at i32) (local $part v128) (local $q i32)
    (block $done
      (loop $each
        (br_if $done (i32.eqz (local.get $count)))
        (local.set $sum (v128.const i32x4 0 0 0 0))
        (local.set $at (i32.const 0))
        (loop $next
          (local.set $part (v128.load (i32.add (local.get $vectors) (local.get $at))))
          (local.set $q (i32.add (local.get $query) (i32.shl (local.get $at) (i32.const 1))))
          (local.set $sum (i32x4.add (local.get $sum) (i32x4.add
            (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $part)) (v128.load (local.get $q)))
            (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $part)) (v128.load offset=16 (local.get $q))))))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (br_if $next (i32.lt_u (local.get $at) (local.get $length))))
        (i32.store (local.get $out) (i32.add
          (i32.add (i32x4.extract_lane 0 (local.get $sum)) (i32x4.extract_lane 1 (local.get $sum)))
          (i32.add (i32x4.extract_lane 2 (local.get $sum)) (i32x4.extract_lane 3 (local.get $sum)))))
        (local.set $vectors (i32.add (local.get $vectors) (local.get $stride)))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (local.set $count (i32.sub (local.get $count) (i32.const 1)))
        (br $each))))

  ;; Writes to `out` a u16 for each of the 32 passages of each of `blocks` blocks of codes: the sum of what `tables` has for each of its
  ;; groups of four bits. A table has 16 u8, one for each value of a group; the caller sees to it that no sum leaves 16 bits. In a block,
  ;; each group has 16 bytes: passages 0 to 15 in the low halves, 16 to 31 in the high ones.
  (func (export "sums") (param $codes i32) (param $tables i32) (param $groups i32) (param $blocks i32) (param $out i32)
    (local $group i32) (local $at i32) (local $code v128) (local $table v128) (local $half v128)
    (local $low v128) (local $lowOdd v128) (local $high v128) (local $highOdd v128)
    (block $done
      (loop $each
        (br_if $done (i32.eqz (local.get $blocks)))
        (local.set $low (v128.const i32x4 0 0 0 0))
        (local.set $lowOdd (v128.const i32x4 0 0 0 0))
        (local.set $high (v128.const i32x4 0 0 0 0))
        (local.set $highOdd (v128.const i32x4 0 0 0 0))
        (local.set $group (local.get $groups))
        (local.set $at (local.get $tables))
        (loop $next
          (local.set $code (v128.load (local.get $codes)))
          (local.set $table (v128.load (local.get $at)))
          ;; Sixteen sums of u8 are kept in two vectors of u16: one takes pairs of bytes as they are, the other their upper bytes alone.
          (local.set $half (i8x16.swizzle (local.get $table)
            (v128.and (local.get $code) (v128.const i32x4 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f))))
          (local.set $low (i16x8.add (local.get $low) (local.get $half)))
          (local.set $lowOdd (i16x8.add (local.get $lowOdd) (i16x8.shr_u (local.get $half) (i32.const 8))))
          (local.set $half (i8x16.swizzle (local.get $table)
            (v128.and (i16x8.shr_u (local.get $code) (i32.const 4)) (v128.const i32x4 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f))))
          (local.set $high (i16x8.add (local.get $high) (local.get $half)))
          (local.set $highOdd (i16x8.add (local.get $highOdd) (i16x8.shr_u (local.get $half) (i32.const 8))))
          (local.set $codes (i32.add (local.get $codes) (i32.const 16)))
          (local.set $at (i32.add (local.get $at) (i32.const 16)))
          (local.set $group (i32.sub (local.get $group) (i32.const 1)))
          (br_if $next (local.get $group)))
        (local.set $low (i16x8.sub (local.get $low) (i16x8.shl (local.get $lowOdd) (i32.const 8))))
        (local.set $high (i16x8.sub (local.get $high) (i16x8.shl (local.get $highOdd) (i32.const 8))))
        (v128.store (local.get $out)
          (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (local.get $low) (local.get $lowOdd)))
        (v128.store offset=16 (local.get $out)
          (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (local.get $low) (local.get $lowOdd)))
        (v128.store offset=32 (local.get $out)
          (i8x16.shuffle 0 1 16 17 2 3 18 19 4 5 20 21 6 7 22 23 (local.get $high) (local.get $highOdd)))
        (v128.store offset=48 (local.get $out)
          (i8x16.shuffle 8 9 24 25 10 11 26 27 12 13 28 29 14 15 30 31 (local.get $high) (local.get $highOdd)))
        (local.set $out (i32.add (local.get $out) (i32.const 64)))
        (local.set $blocks (i32.sub (local.get $blocks) (i32.const 1)))
        (br $each))))

  ;; Writes to `out` a u32 for each of `count` codes that lie one after another from `codes`: the sum of what `tables` has for each of its
  ;; groups, as in `sums`. A code has `length` bytes: each has a group in its lower half, and the next one in its upper half.
  (func (export "codeSums") (param $codes i32) (param $count i32) (param $length i32) (param $tables i32) (param $out i32)
    (local $end i32) (local $last i32) (local $byte i32) (local $table i32) (local $sum i32)
    (local.set $last (i32.add (local.get $out) (i32.shl (local.get $count) (i32.const 2))))
    (block $done
      (loop $each
        (br_if $done (i32.ge_u (local.get $out) (local.get $last)))
        (local.set $sum (i32.const 0))
        (local.set $table (local.get $tables))
        (local.set $end (i32.add (local.get $codes) (local.get $length)))
        (loop $next
          (local.set $byte (i32.load8_u (local.get $codes)))
          (local.set $sum (i32.add (local.get $sum) (i32.add
            (i32.load8_u (i32.add (local.get $table) (i32.and (local.get $byte) (i32.const 15))))
            (i32.load8_u offset=16 (i32.add (local.get $table) (i32.shr_u (local.get $byte) (i32.const 4)))))))
          (local.set $table (i32.add (local.get $table) (i32.const 32)))
          (local.set $codes (i32.add (local.get $codes) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $codes) (local.get $end))))
        (i32.store (local.get $out) (local.get $sum))
        (local.set $out (i32.add (local.get $out) (i32.const 4)))
        (br $each))))

  ;; From the lengths at `lengths`, f32 each, writes the norms of BM25, `flat + slope * length`, and the share of a single occurrence,
  ;; `1 / (1 + norm)`. `count` is a multiple of 4.
  (func (export "norms") (param $lengths i32) (param $count i32) (param $flat f32) (param $slope f32) (param $norms i32) (param $single i32)
    (local $norm v128) (local $at i32) (local $end i32)
    (local.set $end (i32.shl (local.get $count) (i32.const 2)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $norm (f32x4.add (f32x4.splat (local.get $flat))
          (f32x4.mul (f32x4.splat (local.get $slope)) (v128.load (i32.add (local.get $lengths) (local.get $at))))))
        (v128.store (i32.add (local.get $norms) (local.get $at)) (local.get $norm))
        (v128.store (i32.add (local.get $single) (local.get $at))
          (f32x4.div (f32x4.splat (f32.const 1)) (f32x4.add (f32x4.splat (f32.const 1)) (local.get $norm))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br $next))))

  ;; Adds to the scores, f32 each, what one term gives to the passages of its list between `list` and `end`: `weight` times
  ;; `count / (count + norm)`. A passage is its distance to the one before, beginning from `passage`, and its count, in base 128:
  ;; `(distance - 1) * 4 + min(count - 1, 3)`, and from a count of 4 on, `count - 4` as a second number.
  (func $score (export "score") (param $list i32) (param $end i32) (param $passage i32) (param $weight f32)
    (param $norms i32) (param $single i32) (param $scores i32)
    (local $number i32) (local $shift i32) (local $byte i32) (local $more i32) (local $count f32) (local $at i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $list) (local.get $end)))
        (local.set $number (i32.load8_u (local.get $list)))
        (local.set $list (i32.add (local.get $list) (i32.const 1)))
        (if (i32.ge_u (local.get $number) (i32.const 128)) (then
          (local.set $number (i32.and (local.get $number) (i32.const 127)))
          (local.set $shift (i32.const 7))
          (loop $longer
            (local.set $byte (i32.load8_u (local.get $list)))
            (local.set $list (i32.add (local.get $list) (i32.const 1)))
            (local.set $number (i32.or (local.get $number)
              (i32.shl (i32.and (local.get $byte) (i32.const 127)) (local.get $shift))))
            (local.set $shift (i32.add (local.get $shift) (i32.const 7)))
            (br_if $longer (i32.ge_u (local.get $byte) (i32.const 128))))))
        (local.set $passage (i32.add (i32.add (local.get $passage) (i32.shr_u (local.get $number) (i32.const 2))) (i32.const 1)))
        (local.set $at (i32.shl (local.get $passage) (i32.const 2)))
        (local.set $more (i32.and (local.get $number) (i32.const 3)))
        (if (i32.eqz (local.get $more))
          (then
            (f32.store (i32.add (local.get $scores) (local.get $at)) (f32.add
              (f32.load (i32.add (local.get $scores) (local.get $at)))
              (f32.mul (local.get $weight) (f32.load (i32.add (local.get $single) (local.get $at)))))))
          (else
            (if (i32.eq (local.get $more) (i32.const 3)) (then
              (local.set $shift (i32.const 0))
              (loop $longer
                (local.set $byte (i32.load8_u (local.get $list)))
                (local.set $list (i32.add (local.get $list) (i32.const 1)))
                (local.set $more (i32.add (local.get $more)
                  (i32.shl (i32.and (local.get $byte) (i32.const 127)) (local.get $shift))))
                (local.set $shift (i32.add (local.get $shift) (i32.const 7)))
                (br_if $longer (i32.ge_u (local.get $byte) (i32.const 128))))))
            (local.set $count (f32.convert_i32_u (i32.add (local.get $more) (i32.const 1))))
            (f32.store (i32.add (local.get $scores) (local.get $at)) (f32.add
              (f32.load (i32.add (local.get $scores) (local.get $at)))
              (f32.mul (local.get $weight) (f32.div (local.get $count)
                (f32.add (local.get $count) (f32.load (i32.add (local.get $norms) (local.get $at))))))))))
        (br $next))))

  ;; The same for those ranges of a list, of 64 passages each, that have a 1 in `reached`. `starts` has for each range, and for the end
  ;; of the last, where it is after `list`, as i32.
  (func (export "scoreReached") (param $list i32) (param $starts i32) (param $reached i32) (param $ranges i32) (param $weight f32)
    (param $norms i32) (param $single i32) (param $scores i32)
    (local $passage i32)
    (local.set $passage (i32.const -1))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $ranges)))
        (if (i32.load8_u (local.get $reached)) (then
          (call $score
            (i32.add (local.get $list) (i32.load (local.get $starts)))
            (i32.add (local.get $list) (i32.load offset=4 (local.get $starts)))
            (local.get $passage) (local.get $weight) (local.get $norms) (local.get $single) (local.get $scores))))
        (local.set $passage (i32.add (local.get $passage) (i32.const 64)))
        (local.set $starts (i32.add (local.get $starts) (i32.const 4)))
        (local.set $reached (i32.add (local.get $reached) (i32.const 1)))
        (local.set $ranges (i32.sub (local.get $ranges) (i32.const 1)))
        (br $next))))

  ;; Adds to 16 scores `weight` times `count / (count + norm)`, from 16 counts of one byte each.
  (func $addSixteen (param $counts v128) (param $weight v128) (param $norms i32) (param $scores i32)
    (local $half v128) (local $count v128)
    (local.set $half (i16x8.extend_low_i8x16_u (local.get $counts)))
    (local.set $count (f32x4.convert_i32x4_u (i32x4.extend_low_i16x8_u (local.get $half))))
    (v128.store (local.get $scores) (f32x4.add (v128.load (local.get $scores))
      (f32x4.mul (local.get $weight) (f32x4.div (local.get $count) (f32x4.add (local.get $count) (v128.load (local.get $norms)))))))
    (local.set $count (f32x4.convert_i32x4_u (i32x4.extend_high_i16x8_u (local.get $half))))
    (v128.store offset=16 (local.get $scores) (f32x4.add (v128.load offset=16 (local.get $scores))
      (f32x4.mul (local.get $weight) (f32x4.div (local.get $count) (f32x4.add (local.get $count) (v128.load offset=16 (local.get $norms)))))))
    (local.set $half (i16x8.extend_high_i8x16_u (local.get $counts)))
    (local.set $count (f32x4.convert_i32x4_u (i32x4.extend_low_i16x8_u (local.get $half))))
    (v128.store offset=32 (local.get $scores) (f32x4.add (v128.load offset=32 (local.get $scores))
      (f32x4.mul (local.get $weight) (f32x4.div (local.get $count) (f32x4.add (local.get $count) (v128.load offset=32 (local.get $norms)))))))
    (local.set $count (f32x4.convert_i32x4_u (i32x4.extend_high_i16x8_u (local.get $half))))
    (v128.store offset=48 (local.get $scores) (f32x4.add (v128.load offset=48 (local.get $scores))
      (f32x4.mul (local.get $weight) (f32x4.div (local.get $count) (f32x4.add (local.get $count) (v128.load offset=48 (local.get $norms))))))))

  ;; The same as `scoreReached` for counts of every passage, four bits each. A range has 32 bytes: byte i has passage i in its lower half,
  ;; and passage i + 32 in its upper half.
  (func (export "scoreDense") (param $counts i32) (param $reached i32) (param $ranges i32) (param $weight f32)
    (param $norms i32) (param $scores i32)
    (local $low v128) (local $high v128) (local $mask v128) (local $each v128)
    (local.set $mask (v128.const i32x4 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f))
    (local.set $each (f32x4.splat (local.get $weight)))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $ranges)))
        (if (i32.load8_u (local.get $reached)) (then
          (local.set $low (v128.load (local.get $counts)))
          (local.set $high (v128.load offset=16 (local.get $counts)))
          (call $addSixteen (v128.and (local.get $low) (local.get $mask))
            (local.get $each) (local.get $norms) (local.get $scores))
          (call $addSixteen (v128.and (local.get $high) (local.get $mask))
            (local.get $each) (i32.add (local.get $norms) (i32.const 64)) (i32.add (local.get $scores) (i32.const 64)))
          (call $addSixteen (v128.and (i16x8.shr_u (local.get $low) (i32.const 4)) (local.get $mask))
            (local.get $each) (i32.add (local.get $norms) (i32.const 128)) (i32.add (local.get $scores) (i32.const 128)))
          (call $addSixteen (v128.and (i16x8.shr_u (local.get $high) (i32.const 4)) (local.get $mask))
            (local.get $each) (i32.add (local.get $norms) (i32.const 192)) (i32.add (local.get $scores) (i32.const 192)))))
        (local.set $counts (i32.add (local.get $counts) (i32.const 32)))
        (local.set $norms (i32.add (local.get $norms) (i32.const 256)))
        (local.set $scores (i32.add (local.get $scores) (i32.const 256)))
        (local.set $reached (i32.add (local.get $reached) (i32.const 1)))
        (local.set $ranges (i32.sub (local.get $ranges) (i32.const 1)))
        (br $next))))

  ;; Writes to `out` the places, an i32 each, of those of `count` values, f32 each, that are at least `least`, and returns how many there
  ;; are. `count` is a multiple of 16. NaN is never at least anything.
  (func (export "atLeast") (param $values i32) (param $count i32) (param $least f32) (param $out i32) (result i32)
    (local $place i32) (local $first i32) (local $mask i32) (local $bound v128)
    (local.set $first (local.get $out))
    (local.set $bound (f32x4.splat (local.get $least)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $place) (local.get $count)))
        (local.set $mask (i8x16.bitmask (i8x16.narrow_i16x8_s
          (i16x8.narrow_i32x4_s
            (f32x4.ge (v128.load (local.get $values)) (local.get $bound))
            (f32x4.ge (v128.load offset=16 (local.get $values)) (local.get $bound)))
          (i16x8.narrow_i32x4_s
            (f32x4.ge (v128.load offset=32 (local.get $values)) (local.get $bound))
            (f32x4.ge (v128.load offset=48 (local.get $values)) (local.get $bound))))))
        (block $none
          (loop $each
            (br_if $none (i32.eqz (local.get $mask)))
            (i32.store (local.get $out) (i32.add (local.get $place) (i32.ctz (local.get $mask))))
            (local.set $out (i32.add (local.get $out) (i32.const 4)))
            (local.set $mask (i32.and (local.get $mask) (i32.sub (local.get $mask) (i32.const 1))))
            (br $each)))
        (local.set $place (i32.add (local.get $place) (i32.const 16)))
        (local.set $values (i32.add (local.get $values) (i32.const 64)))
        (br $next)))
    (i32.shr_u (i32.sub (local.get $out) (local.get $first)) (i32.const 2)))

  ;; Writes to `out` an f32 for each of `count` sums, u16 each, a multiple of 8: `centre + scale * (unit * sum + least)`, with the scale of
  ;; each, f32 from `scales`.
  (func (export "estimates") (param $sums i32) (param $scales i32) (param $count i32) (param $unit f32) (param $least f32)
    (param $centre f32) (param $out i32)
    (local $sum v128) (local $end i32)
    (local.set $end (i32.add (local.get $out) (i32.shl (local.get $count) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $out) (local.get $end)))
        (local.set $sum (v128.load (local.get $sums)))
        (v128.store (local.get $out) (f32x4.add (f32x4.splat (local.get $centre)) (f32x4.mul (v128.load (local.get $scales))
          (f32x4.add (f32x4.splat (local.get $least)) (f32x4.mul (f32x4.splat (local.get $unit))
            (f32x4.convert_i32x4_u (i32x4.extend_low_i16x8_u (local.get $sum))))))))
        (v128.store offset=16 (local.get $out) (f32x4.add (f32x4.splat (local.get $centre)) (f32x4.mul (v128.load offset=16 (local.get $scales))
          (f32x4.add (f32x4.splat (local.get $least)) (f32x4.mul (f32x4.splat (local.get $unit))
            (f32x4.convert_i32x4_u (i32x4.extend_high_i16x8_u (local.get $sum))))))))
        (local.set $sums (i32.add (local.get $sums) (i32.const 16)))
        (local.set $scales (i32.add (local.get $scales) (i32.const 32)))
        (local.set $out (i32.add (local.get $out) (i32.const 32)))
        (br $next))))

  ;; For each of `ranges` ranges of 64 scores writes a byte to `out`: whether one of them is at least `least`.
  (func (export "reaching") (param $scores i32) (param $ranges i32) (param $least f32) (param $out i32)
    (local $any v128) (local $end i32)
    (block $done
      (loop $each
        (br_if $done (i32.eqz (local.get $ranges)))
        (local.set $any (v128.const i32x4 0 0 0 0))
        (local.set $end (i32.add (local.get $scores) (i32.const 256)))
        (loop $next
          (local.set $any (v128.or (local.get $any) (v128.or
            (f32x4.ge (v128.load (local.get $scores)) (f32x4.splat (local.get $least)))
            (f32x4.ge (v128.load offset=16 (local.get $scores)) (f32x4.splat (local.get $least))))))
          (local.set $scores (i32.add (local.get $scores) (i32.const 32)))
          (br_if $next (i32.lt_u (local.get $scores) (local.get $end))))
        (i32.store8 (local.get $out) (v128.any_true (local.get $any)))
        (local.set $out (i32.add (local.get $out) (i32.const 1)))
        (local.set $ranges (i32.sub (local.get $ranges) (i32.const 1)))
        (br $each))))

  ;; Writes to `out` how often each term between `terms` and `termsEnd`, ascending ids of i32, is in the list between `list` and `end`,
  ;; as i32. The list has for each of its terms, in ascending order, the difference to the id before and the count, in base 128.
  (func (export "counts") (param $list i32) (param $end i32) (param $terms i32) (param $termsEnd i32) (param $out i32)
    (local $id i32) (local $number i32) (local $byte i32) (local $shift i32)
    (memory.fill (local.get $out) (i32.const 0) (i32.sub (local.get $termsEnd) (local.get $terms)))
    (block $done
      (br_if $done (i32.ge_u (local.get $terms) (local.get $termsEnd)))
      (loop $next
        (br_if $done (i32.ge_u (local.get $list) (local.get $end)))
        (local.set $number (i32.load8_u (local.get $list)))
        (local.set $list (i32.add (local.get $list) (i32.const 1)))
        (if (i32.ge_u (local.get $number) (i32.const 128)) (then
          (local.set $number (i32.and (local.get $number) (i32.const 127)))
          (local.set $shift (i32.const 7))
          (loop $longer
            (local.set $byte (i32.load8_u (local.get $list)))
            (local.set $list (i32.add (local.get $list) (i32.const 1)))
            (local.set $number (i32.or (local.get $number)
              (i32.shl (i32.and (local.get $byte) (i32.const 127)) (local.get $shift))))
            (local.set $shift (i32.add (local.get $shift) (i32.const 7)))
            (br_if $longer (i32.ge_u (local.get $byte) (i32.const 128))))))
        (local.set $id (i32.add (local.get $id) (local.get $number)))
        (local.set $number (i32.load8_u (local.get $list)))
        (local.set $list (i32.add (local.get $list) (i32.const 1)))
        (if (i32.ge_u (local.get $number) (i32.const 128)) (then
          (local.set $number (i32.and (local.get $number) (i32.const 127)))
          (local.set $shift (i32.const 7))
          (loop $longer
            (local.set $byte (i32.load8_u (local.get $list)))
            (local.set $list (i32.add (local.get $list) (i32.const 1)))
            (local.set $number (i32.or (local.get $number)
              (i32.shl (i32.and (local.get $byte) (i32.const 127)) (local.get $shift))))
            (local.set $shift (i32.add (local.get $shift) (i32.const 7)))
            (br_if $longer (i32.ge_u (local.get $byte) (i32.const 128))))))
        (block $reached
          (loop $skip
            (br_if $reached (i32.ge_u (i32.load (local.get $terms)) (local.get $id)))
            (local.set $terms (i32.add (local.get $terms) (i32.const 4)))
            (local.set $out (i32.add (local.get $out) (i32.const 4)))
            (br_if $done (i32.ge_u (local.get $terms) (local.get $termsEnd)))
            (br $skip)))
        (if (i32.eq (i32.load (local.get $terms)) (local.get $id)) (then (i32.store (local.get $out) (local.get $number))))
        (br $next)))))
