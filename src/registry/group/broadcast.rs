//! A message to many members of a group.
//!
//! It goes to those that are members at one moment, one after the other, without a lock.

use std::any::Any;
use std::future::poll_fn;

use super::super::member::RegisteredActor;
use super::{Group, of};
use crate::directory::NamedActor;
use crate::task::Unordered;

/// What became of a message to each member of a [`Group`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broadcast {
    /// The number of members that have accepted it. One that is just told the
    /// [history](Group::replay) counts as well, although its mailbox may have no room afterwards.
    /// [`send_all`](Group::send_all) counts it only when it has the message.
    pub sent: usize,
    /// The number of members whose mailboxes had no room.
    pub full: usize,
    /// The number of members that have closed and not ended yet.
    pub closed: usize,
}

impl<M: Send + 'static> Group<M> {
    /// Tells each member the message, as [`Address::tell`](crate::Address::tell) does. Never waits.
    ///
    /// Messages of one caller reach a member in the order of the calls. A member whose mailbox is
    /// full misses the message.
    ///
    /// # Panics
    /// If no runtime is current and none was set with [`on`](Group::on). A panic of `clone` is
    /// passed on; some members have the message then.
    #[track_caller]
    pub fn broadcast(&self, message: M) -> Broadcast
    where
        M: Clone,
    {
        let members = self.publish(&message);
        tell_those(members.values().filter_map(of::<M>), message)
    }

    /// Tells the message to each member whose tag `filter` returns true for, as
    /// [`broadcast`](Group::broadcast) tells it to all.
    ///
    /// It goes to members that have joined with a tag of type `T`, by
    /// [`join_tagged`](Group::join_tagged). Others are left out, and counted nowhere.
    ///
    /// # Panics
    /// As [`broadcast`](Group::broadcast). A panic of `filter` is passed on in the same way.
    ///
    /// ```
    /// use greenroom::registry::Group;
    /// use greenroom::{Context, spawn};
    ///
    /// #[derive(PartialEq)]
    /// enum Region {
    ///     North,
    ///     South,
    /// }
    ///
    /// const WEATHER: Group<&str> = Group::new("weather");
    ///
    /// async fn station(mut cx: Context<&'static str>) -> Option<&'static str> {
    ///     cx.recv().await
    /// }
    ///
    /// greenroom::run(async {
    ///     let (north, south) = (spawn!(station(_)), spawn!(station(_)));
    ///     WEATHER.join_tagged(&north, Region::North).unwrap();
    ///     WEATHER.join_tagged(&south, Region::South).unwrap();
    ///     let told = WEATHER.broadcast_to("storm", |region: &Region| *region == Region::North);
    ///     assert_eq!(told.sent, 1);
    ///     assert_eq!(north.join().await.unwrap(), Some("storm"));
    ///     assert_eq!(WEATHER.broadcast("sun").sent, 1);
    ///     assert_eq!(south.join().await.unwrap(), Some("sun"));
    /// });
    /// ```
    #[doc(alias("filter", "broadcast_from", "publish"))]
    #[track_caller]
    pub fn broadcast_to<T: Any>(&self, message: M, filter: impl Fn(&T) -> bool) -> Broadcast
    where
        M: Clone,
    {
        let members = self.all();
        let is_told = |member: &&RegisteredActor<M>| {
            let tag = member.tag.as_ref().and_then(|tag| tag.downcast_ref());
            tag.is_some_and(&filter)
        };
        tell_those(
            members.values().filter_map(of::<M>).filter(is_told),
            message,
        )
    }

    /// Sends each member the message, and waits for room where a mailbox is full, as
    /// [`Address::send`](crate::Address::send) does.
    ///
    /// The future borrows nothing. The message goes to those that are members at its first poll. It
    /// waits for all of them at the same time, so a slow member delays the result and no other
    /// member. The only `full` ones are those whose [`overflow`](crate::ActorBuilder::overflow)
    /// lets no sender wait. A member that waits for this waits for itself if its own mailbox is
    /// full.
    ///
    /// # Panics
    /// As [`broadcast`](Group::broadcast), when it is first polled.
    ///
    /// # Cancel safety
    /// Dropping the future drops the messages that wait for room, and those to members that are just
    /// told the [history](Group::replay). All other members have the message.
    pub fn send_all(&self, message: M) -> impl Future<Output = Broadcast> + use<M>
    where
        M: Clone,
    {
        let group = self.clone();
        async move {
            let (mut result, members) = (Broadcast::default(), group.publish(&message));
            let (mut waiting, members) = (Unordered::new(), members.values().filter_map(of::<M>));
            tell_all(
                members,
                message,
                // A late member is sent the message when it was told the history.
                |_| 0,
                &mut result,
                |_, member, message| {
                    waiting.push(async move {
                        if let Some(late) = &member.late {
                            late.until_told().await;
                        }
                        member.address.send(message).await
                    });
                },
            );
            while let Some(sent) = poll_fn(|cx| waiting.poll_next(cx)).await {
                match sent {
                    Ok(()) => result.sent += 1,
                    Err(error) if error.is_full() => result.full += 1,
                    Err(_closed) => result.closed += 1,
                }
            }
            result
        }
    }
}

/// Tells each member the message.
fn tell_those<'a, M: Clone + Send + 'static>(
    members: impl Iterator<Item = &'a RegisteredActor<M>>,
    message: M,
) -> Broadcast {
    let mut result = Broadcast::default();
    // What waits for a late member is bounded as its mailbox is.
    let room = |member: &RegisteredActor<M>| member.address.capacity().unwrap_or(usize::MAX);
    tell_all(members, message, room, &mut result, |result, _, _| {
        result.full += 1
    });
    result
}

/// Tells each member the message, and calls `full` with the ones that have no room. `room` says how
/// many messages may wait for a late member.
fn tell_all<'a, M: Clone + Send + 'static>(
    members: impl Iterator<Item = &'a RegisteredActor<M>>,
    message: M,
    room: impl Fn(&RegisteredActor<M>) -> usize,
    result: &mut Broadcast,
    mut full: impl FnMut(&mut Broadcast, &'a RegisteredActor<M>, M),
) {
    let (mut members, mut message) = (members.peekable(), Some(message));
    while let Some(member) = members.next() {
        // The last one gets the message itself.
        let copy = match members.peek() {
            Some(_) => message.clone(),
            None => message.take(),
        };
        let mut copy = copy.expect("taken by the last one");
        if let Some(late) = &member.late {
            match late.push(copy, room(member)) {
                Ok(()) => {
                    result.sent += 1;
                    continue;
                }
                Err((refused, true)) => copy = refused,
                Err((refused, false)) => {
                    full(result, member, refused);
                    continue;
                }
            }
        }
        match member.address.tell(copy) {
            Ok(()) => result.sent += 1,
            Err(error) if error.is_full() => full(result, member, error.into_inner()),
            // One that has ended is no member. It is asked only here, since few have.
            Err(_closed) => result.closed += usize::from(!member.has_ended()),
        }
    }
}
