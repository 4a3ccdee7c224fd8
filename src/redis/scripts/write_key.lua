-- Replaces the state `bytes` by `after`; sets is_written to false if the key holds another type,
-- which MGET does not show. In a batch, keeping a key's expiry saves a fifth of the time, and
-- keeping its length a tenth more.
if bytes and keeps_end then
  if #after == #bytes then
    call('SETRANGE', key, '0', after)
  else
    call('SET', key, after, 'KEEPTTL')
  end
else
  if lifetime ~= of_lifetime then
    of_lifetime, ends_at = lifetime, format('%d', base_of_ends + ceil(lifetime / 1000))
  end
  if bytes then
    call('SET', key, after, 'PXAT', ends_at)
  else
    is_written = call('SET', key, after, 'PXAT', ends_at, 'NX')
  end
end
if has_repeats and is_written and read then written[key] = after end
